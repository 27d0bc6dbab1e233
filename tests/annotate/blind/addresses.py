"""Every address that the project has, read from the URL configuration, with arguments of the world."""

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.annotate.worlds import response_of


def patterns(resolver=None, namespace=()):
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLResolver):
            yield from patterns(entry, (*namespace, entry.namespace) if entry.namespace else namespace)
        elif isinstance(entry, URLPattern):
            yield ":".join((*namespace, entry.name or "")), entry


def values(world) -> dict:
    """Argument -> what to put there; `view name/argument` where one name means two things."""
    round, version = world.round, world.version
    response = response_of(round, 6)
    known = {
        "slug": version.evalset.slug,
        "number": version.number,
        "round_id": round.pk,
        "round_number": round.number,
        "rubric_number": 1,
        "earlier": 1,
        "later": 1,
        "task": 1,
        "dimension": "grounding",
        "target": response.claims.get().pk,
        "claim": response.claims.get().pk,
        "split": 1,
        "decision": 1,
        "run": 1,
        "run_number": 1,
        "report": 1,
        "upload": 1,
        "summary": 1,
        "watch": "production",
        "mark": 1,
        "day": "2026-03-01",
        "judge": 1,
        "alert": 1,
        "extraction": 1,
        "member": 1,
        "entry": 1,
        "prompt": 1,
        "kind": "svg",
        "picture": "confusion",
        "pk": response.pk,
        "sample_number": 1,
        "position": 1,
        "token": "ts_000000000000",
        "file": "manifest.json",
        "assignment": world.assignments(world.b).first().pk,
        "evalsets:remove_member/pk": 1,
        "calibration:rates_chart/picture": "pair",
        "calibration:compare_chart/picture": "over_refusal",
    }
    of_admin = {
        "object_id": 1,
        "app_label": "auth",
        "content_type_id": 1,
        "url": "anything",
        "id": 1,
    }
    return known | world.ids | of_admin


def arguments_of(pattern: URLPattern) -> set[str]:
    return set(pattern.pattern.converters) | set(pattern.pattern.regex.groupindex)


def every_address(world) -> list[str]:
    known, found, unknown = values(world), [], []
    for name, pattern in patterns():
        names = arguments_of(pattern)
        given = {n: known.get(f"{name}/{n}", known.get(n)) for n in names}
        if missing := [n for n in names if given[n] is None]:
            unknown.append(f"{name} <{', '.join(missing)}>")
        elif pattern.name:
            found.append(reverse(name, kwargs=given))
    assert not unknown, f"addresses whose arguments this test does not know: {unknown}"
    return sorted(set(found))
