// The item explorer: a chosen key shows its fields at once, a range its second value, and texts can be copied.
// Everything but copying works without this script.
"use strict";
{
  for (const select of document.querySelectorAll("[data-submits]")) {
    select.addEventListener("change", () => {
      const form = select.form;
      // Another table or key has other variables.
      for (const input of form.querySelectorAll('[name^="v_"], [name="pk"], [name="index"], [name="begins"], [name="sort"], [name="to"], [name="op"]')) {
        input.disabled = true;
      }
      form.submit();
    });
  }
  const operator = document.getElementById("id_op");
  if (operator) {
    const show = () => {
      for (const each of document.querySelectorAll(".dynamo-to")) { each.hidden = operator.value !== "between"; }
    };
    operator.addEventListener("change", show);
    show();
  }
  for (const button of document.querySelectorAll("[data-copies]")) {
    if (!navigator.clipboard) { continue; }
    button.hidden = false;
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent).then(() => {
        button.textContent = button.dataset.done;
      });
    });
  }
}
