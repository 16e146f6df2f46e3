'use strict';
// Adds empty rows to lists, and moves rows by buttons, by Alt and the arrow keys, and by dragging. Without this script
// further rows come with "Save and continue editing", and the number of a row says where it goes.
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
        equipAll(list);
        first.focus();
    }

    // Moving

    function rowsOf(list) {
        return [...list.querySelectorAll(':scope > .dynamo-row')];
    }

    function placeOf(row) {
        return row.querySelector(':scope > .dynamo-row-place > input[type=number]');
    }

    function isEmpty(row) {
        const inputs = [...row.querySelectorAll('input, select, textarea')];
        const filled = (each) => (each.type === 'checkbox' || each.type === 'radio') ? each.checked : each.value !== '';
        return !inputs.some((each) => each.type !== 'hidden' && !each.closest('.dynamo-row-place') && filled(each));
    }

    // An empty row has no place, since it is left out.
    function number(list) {
        let place = 0;
        for (const row of rowsOf(list)) {
            placeOf(row).value = isEmpty(row) ? '' : String(++place);
        }
    }

    function move(row, by) {
        const list = row.parentElement;
        const rows = rowsOf(list);
        const other = rows[rows.indexOf(row) + by];
        if (other) {
            by < 0 ? other.before(row) : other.after(row);
            number(list);
        }
        return Boolean(other);
    }

    function button(text, label, act) {
        const made = document.createElement('button');
        made.type = 'button';
        made.textContent = text;
        made.title = label;
        made.setAttribute('aria-label', label);
        made.addEventListener('click', act);
        return made;
    }

    function equip(row) {
        const list = row.parentElement;
        const place = row.querySelector(':scope > .dynamo-row-place');
        if (!list.dataset.up || !place || placeOf(row).disabled || place.querySelector('.dynamo-move')) {
            return;
        }
        const moves = document.createElement('span');
        moves.className = 'dynamo-move';
        for (const [text, label, by] of [['↑', list.dataset.up, -1], ['↓', list.dataset.down, 1]]) {
            const made = button(text, label, () => { move(row, by); made.focus(); });
            moves.append(made);
        }
        // Browsers do not agree on whether a button can be dragged.
        const handle = document.createElement('span');
        handle.textContent = '⠿';
        handle.title = list.dataset.drag;
        handle.setAttribute('aria-hidden', 'true');
        handle.draggable = true;
        handle.addEventListener('dragstart', (event) => {
            row.classList.add('dynamo-dragged');
            event.dataTransfer.effectAllowed = 'move';
            event.dataTransfer.setData('text/plain', '');
        });
        handle.addEventListener('dragend', () => row.classList.remove('dynamo-dragged'));
        moves.append(handle);
        place.append(moves);
        const remove = place.querySelector('input[type=checkbox]');
        if (remove) {
            const show = () => row.classList.toggle('dynamo-removed', remove.checked);
            remove.addEventListener('change', show);
            show();
        }
    }

    function equipAll(root) {
        root.querySelectorAll('.dynamo-list > .dynamo-row').forEach(equip);
    }

    document.addEventListener('dragover', (event) => {
        const dragged = document.querySelector('.dynamo-dragged');
        const over = dragged && event.target.closest?.('.dynamo-row');
        if (!over || over.parentElement !== dragged.parentElement) {
            return;
        }
        event.preventDefault();
        const box = over.getBoundingClientRect();
        if (over !== dragged) {
            event.clientY < box.top + box.height / 2 ? over.before(dragged) : over.after(dragged);
        }
    });
    document.addEventListener('drop', (event) => {
        const dragged = document.querySelector('.dynamo-dragged');
        if (dragged) {
            event.preventDefault();
            number(dragged.parentElement);
        }
    });
    document.addEventListener('keydown', (event) => {
        const by = {ArrowUp: -1, ArrowDown: 1}[event.key];
        const row = event.altKey && by && event.target.closest?.('.dynamo-row');
        if (row && row.querySelector(':scope > .dynamo-row-place .dynamo-move')) {
            event.preventDefault();
            const focused = event.target;
            move(row, by);
            focused.focus();
        }
    });
    document.addEventListener('DOMContentLoaded', () => { offer(document); equipAll(document); });
    // Django's script has added a row of an inline.
    document.addEventListener('formset:added', (event) => equipAll(event.target));
    document.addEventListener('click', (event) => {
        const button = event.target.closest('.dynamo-add button');
        if (button) {
            add(button.closest('.dynamo-list'));
        }
    });
}
