'use strict';
// Adds empty rows to lists. Without this script further ones come with "Save and continue editing".
{
    const INPUTS = 'input, select, textarea, button';

    function offer(root) {
        for (const each of root.querySelectorAll('.dynamo-add')) {
            each.hidden = false;
        }
        for (const each of root.querySelectorAll('.dynamo-unscripted')) {
            each.hidden = true;
        }
    }

    // A row as it is for this list. Where Django's script has numbered a row of an inline, its names are others than
    // those that the page came with.
    function rowOf(list, count) {
        const number = Number(count.value);
        const place = `${list.dataset.name}.__row__`;
        const html = list.querySelector(':scope > template').innerHTML
            .replaceAll(`{${place}}`, String(number + 1))
            .replaceAll(place, `${count.name.slice(0, -'.count'.length)}.${number}`)
            .replaceAll(`${list.dataset.id}-__row__`, `${count.id.slice(0, -'-count'.length)}-${number}`);
        const made = document.createElement('template');
        made.innerHTML = html;
        return document.importNode(made.content, true);
    }

    function fits(list, row) {
        const added = row.querySelectorAll(INPUTS).length;
        const ofForm = Number(list.dataset.mostOfForm) || Infinity;
        const has = list.querySelectorAll(INPUTS).length;
        return has + added <= Number(list.dataset.most) && list.closest('form').elements.length + added <= ofForm;
    }

    function add(list) {
        const count = list.querySelector(':scope > .dynamo-count');
        const row = rowOf(list, count);
        if (!fits(list, row)) {
            list.querySelector(':scope > .dynamo-add').hidden = true;
            list.querySelector(':scope > .dynamo-full').hidden = false;
            return;
        }
        offer(row);
        const first = row.querySelector('input:not([type=hidden]), select, textarea');
        count.value = String(Number(count.value) + 1);
        list.querySelector(':scope > template').before(row);
        first.focus();
    }

    document.addEventListener('DOMContentLoaded', () => offer(document));
    document.addEventListener('click', (event) => {
        const button = event.target.closest('.dynamo-add button');
        if (button) {
            add(button.closest('.dynamo-list'));
        }
    });
}
