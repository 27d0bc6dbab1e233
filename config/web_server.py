"""How gunicorn runs the web server: `gunicorn --config python:config.web_server`."""

import os

wsgi_app = "config.wsgi"
worker_class = "gthread"
workers = 2 if os.environ.get("DATABASE_URL", "").startswith("postgres") else 1
threads = 8
timeout = 120
graceful_timeout = 5
keepalive = 75  # seconds; a grader who reads for a while keeps the connection
loglevel = "warning"
