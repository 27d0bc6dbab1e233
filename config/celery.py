import os

from celery import Celery

from config import embedded_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

embedded_broker.install()
app = Celery("touchstone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
