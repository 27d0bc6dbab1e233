"""How gunicorn runs the web server: `gunicorn --config python:config.web_server`."""

import sys

wsgi_app = "config.wsgi"
worker_class = "gthread"
workers = 2
threads = 4
timeout = 120
graceful_timeout = 5
keepalive = 75  # seconds; a grader who reads for a while keeps the connection
loglevel = "warning"


def post_worker_init(worker):
    """A label holds the write lock over a dozen short statements, and must not wait long after each."""
    sys.setswitchinterval(0.0005)  # seconds; usually 0.005
