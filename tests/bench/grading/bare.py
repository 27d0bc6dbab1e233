"""What the benchmark stands beside: a bare Django view that inserts one label and renders the next item.

No session, no form token, no rubric, no gold; the same server, database and text.
"""

import os

import django
from django.conf import settings

if not settings.configured:
    import dj_database_url

    database = dj_database_url.parse(os.environ["DATABASE_URL"], conn_max_age=60)
    if database["ENGINE"].endswith("sqlite3"):
        database["OPTIONS"] = {
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        }
    settings.configure(
        SECRET_KEY="bare",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF=__name__,
        DATABASES={"default": database},
        USE_TZ=True,
    )
    django.setup(set_prefix=False)

from django.core.wsgi import get_wsgi_application
from django.db import models
from django.http import HttpResponse
from django.template import Context, Engine
from django.urls import path

PAGE = Engine().from_string(
    """<h1>{{ item.id }}</h1><p>{{ item.text }}</p>
{% for passage in passages %}<p>{{ passage.text }}</p>{% endfor %}
<form method="post"><input type="hidden" name="item" value="{{ item.id }}">
{% for label in labels %}<button name="label" value="{{ label }}">{{ label }}</button>{% endfor %}</form>"""
)


class Label(models.Model):
    item = models.IntegerField()
    label = models.CharField(max_length=30)

    class Meta:
        app_label = "bench"
        db_table = "bench_label"
        managed = False

    def __str__(self):
        return self.label


class Response(models.Model):
    text = models.TextField()

    class Meta:
        app_label = "bench"
        db_table = "evalsets_response"
        managed = False

    def __str__(self):
        return self.text


class Passage(models.Model):
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="passages")
    text = models.TextField()

    class Meta:
        app_label = "bench"
        db_table = "evalsets_passage"
        managed = False

    def __str__(self):
        return self.text


def label(request):
    number = int(request.POST["item"])
    Label.objects.create(item=number, label=request.POST["label"])
    item = Response.objects.get(pk=number + 1)
    context = {
        "item": item,
        "passages": item.passages.all(),
        "labels": ["supported", "contradicted", "unsupported", "unverifiable"],
    }
    return HttpResponse(PAGE.render(Context(context)))


def healthz(request):
    return HttpResponse("ok")


urlpatterns = [path("", label), path("healthz", healthz)]
application = get_wsgi_application()
