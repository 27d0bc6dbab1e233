FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 DATA_DIR=/data
WORKDIR /app

COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock

COPY . .
RUN useradd --system --uid 10001 touchstone && mkdir /data && chown touchstone /data
USER touchstone
VOLUME /data
EXPOSE 8000
