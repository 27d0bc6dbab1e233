"""How gunicorn runs the web server: `gunicorn --config python:config.web_server`."""

wsgi_app = "config.wsgi"
worker_class = "gthread"
workers = 2  # one Python computes one page at a time, and graders come several at once
threads = 8
timeout = 120
graceful_timeout = 5
keepalive = 75  # seconds; a grader who reads for a while keeps the connection
loglevel = "warning"
