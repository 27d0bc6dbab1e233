import os

from celery import Celery
from kombu.transport.redis import Channel

from config import embedded_broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

embedded_broker.install()
# A message is a doorbell, the row is the work: hanging it back over a lost connection ended the worker.
Channel.do_restore = False
app = Celery("touchstone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
