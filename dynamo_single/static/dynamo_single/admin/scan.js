'use strict';
// Scans a large list, or checks a table, step by step, until a user stops it; without scripts each step is a link.
// If the user followed a link from another site, or reloads the page, it waits for a click, because each step costs.
{
    const box = document.getElementById('scan');
    const stop = document.getElementById('scan-stop');
    // The rows, the list that contains them, and the element that the list is added to.
    const {rows: ROWS, list: LIST, into: INTO} = {
        rows: '#result_list tbody', list: '#changelist-form .results', into: '#changelist-form', ...box?.dataset,
    };
    // A page does not add more rows than this to itself without a click.
    const MOST_ROWS = 1000;
    let isStopped = false;
    let isRunning = false;

    function showRows(page) {
        const found = page.querySelector(ROWS);
        if (!found) {
            return 0;
        }
        const count = found.children.length;
        const shown = document.querySelector(ROWS);
        if (shown) {
            shown.append(...found.children);
        } else {
            const place = document.querySelector(INTO);
            place.insertBefore(page.querySelector(LIST), place.querySelector('.paginator'));
        }
        return count;
    }

    // The browser keeps the rows found so far with the page: a reload, or the way back from a row, shows them again.
    function keep() {
        const list = document.querySelector(LIST);
        const state = {
            owner: box.dataset.owner,
            rows: list ? list.outerHTML : '',
            progress: box.querySelector('.scan-progress').outerHTML,
        };
        try {
            history.replaceState({...history.state, scan: state}, '');
        } catch {
            // More rows than the browser keeps: a reload begins with the first step.
        }
    }

    function parsed(text) {
        return new DOMParser().parseFromString(text, 'text/html');
    }

    function restore() {
        const state = history.state && history.state.scan;
        if (!state || state.owner !== box.dataset.owner) {
            return false;
        }
        const list = document.querySelector(LIST);
        const page = parsed(`<form id="changelist-form">${state.rows}</form>${state.progress}`);
        if (list) {
            list.remove();
        }
        showRows(page);
        box.querySelector('.scan-progress').replaceWith(page.querySelector('.scan-progress'));
        return true;
    }

    async function read(address) {
        try {
            const answer = await fetch(address, {credentials: 'same-origin'});
            return answer.ok && !answer.redirected ? await answer.text() : null;
        } catch {
            return null;
        }
    }

    async function lookThrough() {
        let next = box.querySelector('a[rel=next]');
        let added = 0;
        isStopped = false;
        isRunning = true;
        stop.hidden = !next;
        while (next && !isStopped && added < MOST_ROWS) {
            next.hidden = true;
            const text = await read(next.href);
            if (text === null) {
                // The page in its place says why: a login, or a database that does not answer.
                window.location.assign(next.href);
                return;
            }
            const page = parsed(text);
            added += showRows(page);
            box.querySelector('.scan-progress').replaceWith(page.querySelector('#scan .scan-progress'));
            next = box.querySelector('a[rel=next]');
            keep();
        }
        isRunning = false;
        const hadFocus = document.activeElement === stop;
        stop.hidden = true;
        if (hadFocus) {
            // Who uses the keyboard stays where the list goes on, or at what was found.
            const place = next || box.querySelector('.scan-progress');
            place.tabIndex = next ? 0 : -1;
            place.focus();
        }
    }

    if (box && stop) {
        stop.addEventListener('click', () => { isStopped = true; });
        box.addEventListener('click', (event) => {
            const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
            if (isPlain && event.target.closest('a[rel=next]') && !isRunning) {
                event.preventDefault();
                stop.hidden = false;
                stop.focus();
                lookThrough();
            }
        });
        const [entry] = performance.getEntriesByType('navigation');
        const isAgain = entry !== undefined && (entry.type === 'reload' || entry.type === 'back_forward');
        if (!restore() && box.dataset.goesOn && !isAgain) {
            lookThrough();
        }
    }
}
