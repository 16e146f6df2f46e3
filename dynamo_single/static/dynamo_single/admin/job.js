"use strict";
/*
 * Follows a job that a worker runs. Without a worker, it runs the job batch by batch while its page is open. The page
 * works without this script: the button does the same, and reloading shows the progress.
 */
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("job-form");
  const progress = document.getElementById("job-progress");
  const done = document.getElementById("job-done");
  let running = false;

  async function ask(options) {
    const response = await fetch(window.location.href, { ...options, headers: { Accept: "application/json" } });
    if (!response.ok || response.redirected) {
      throw new Error(response.statusText);
    }
    const job = await response.json();
    progress.value = job.done;
    done.textContent = job.done;
    return job;
  }

  function wait(milliseconds) {
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
  }

  async function carryOn() {
    const job = await ask({ method: "POST", body: new FormData(form) });
    if (job.claimed && !job.queued && job.done < job.total) {
      /* Another page works on it. */
      await wait(1000);
    }
    return job.queued || job.stopped || job.done >= job.total;
  }

  /* Each reading costs as much as the job is large, so that the pauses grow. */
  async function follow() {
    let pause = 1000;
    do {
      await wait(pause);
      pause = Math.min(1.5 * pause, 15000);
    } while ((await ask({})).queued);
  }

  /* The page that is shown afterwards has the errors. */
  async function thenReload(work) {
    try {
      await work();
    } catch {
      /* The page says what became of it. */
    }
    window.location.replace(window.location.pathname + window.location.search);
  }

  if (document.getElementById("job-queued")) {
    thenReload(follow);
  }
  if (!form) {
    return;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) {
      return;
    }
    running = true;
    form.querySelector("[type=submit]").disabled = true;
    thenReload(async () => {
      while (!(await carryOn()));
    });
  });

  /* After "Undo" the job has begun, and goes on. A link from elsewhere begins none. */
  if (window.location.hash === "#go-on" && form.dataset.running === "yes") {
    form.requestSubmit();
  }
});
