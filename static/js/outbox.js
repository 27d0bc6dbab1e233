// Labels on their way. A label is kept in this browser before it is sent, with its idempotency key, and dropped once
// the server has answered; because of the key it is stored once however often it arrives.
"use strict";

const Outbox = (store) => {
  const UNDER_WAY = 20_000; // milliseconds; after them the tab that sent it is taken to be gone

  const all = () => {
    try {
      return JSON.parse(localStorage.getItem(store) ?? "[]");
    } catch {
      return [];
    }
  };
  const write = (labels) => {
    try {
      if (labels.length) localStorage.setItem(store, JSON.stringify(labels));
      else localStorage.removeItem(store);
      return true;
    } catch {
      return false;
    }
  };

  return {
    // Whether this browser holds it now.
    keep: (label) => write([...all().filter((kept) => kept.key !== label.key), label]),
    drop: (label) => write(all().filter((kept) => kept.key !== label.key)),
    // Those that failed, and those of a tab that was closed while it sent them.
    waiting: () => all().filter((label) => label.failed || Date.now() - label.at > UNDER_WAY),
    // What is here when a page begins was left by a page that ended.
    takeOver: () => write(all().map((label) => ({ ...label, failed: true }))),
  };
};
