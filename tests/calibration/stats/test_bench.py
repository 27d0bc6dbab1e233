"""The benchmark runs and its goal holds at a tenth of its size."""

from tests.bench.bench_stats import main


def test_clustered_kappa_is_quicker_than_the_bare_one(capsys):
    assert main(["--pairs", "200000", "--responses", "10000", "--draws", "50"]) == 0
    assert "reached" in capsys.readouterr().out
