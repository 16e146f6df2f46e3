"use strict";
/* Carries a job on, batch by batch, while its page is open. Without this script the button does the same. */
document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("job-form");
  if (!form) {
    return;
  }
  const progress = document.getElementById("job-progress");
  const done = document.getElementById("job-done");
  let running = false;

  async function carryOn() {
    const response = await fetch(window.location.href, {
      method: "POST",
      body: new FormData(form),
      headers: { Accept: "application/json" },
    });
    if (!response.ok || response.redirected) {
      throw new Error(response.statusText);
    }
    const job = await response.json();
    progress.value = job.done;
    done.textContent = job.done;
    if (job.claimed && job.done < job.total) {
      /* Another page works on it. */
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    return job.stopped || job.done >= job.total;
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) {
      return;
    }
    running = true;
    form.querySelector("[type=submit]").disabled = true;
    try {
      while (!(await carryOn()));
    } catch {
      /* The page says what became of it. */
    }
    window.location.replace(window.location.pathname + window.location.search);
  });

  /* After "Undo" the job has begun, and goes on. A link from elsewhere begins none. */
  if (window.location.hash === "#go-on" && form.dataset.running === "yes") {
    form.requestSubmit();
  }
});
