'use strict';
// Looks through a large list, step after step, until somebody stops it; without scripts each step is a link.
// Where somebody followed a link of another site, the page waits for a click, since going on is paid for.
{
    const box = document.getElementById('scan');
    const stop = document.getElementById('scan-stop');
    let isStopped = false;

    function showRows(page) {
        const found = page.querySelector('#result_list tbody');
        if (!found) {
            return;
        }
        const shown = document.querySelector('#result_list tbody');
        if (shown) {
            shown.append(...found.children);
        } else {
            document.getElementById('changelist-form').append(page.querySelector('#changelist-form .results'));
        }
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
        stop.hidden = !next;
        while (next && !isStopped) {
            const text = await read(next.href);
            if (text === null) {
                // The page in its place says why: a login, or a database that does not answer.
                window.location.assign(next.href);
                return;
            }
            const page = new DOMParser().parseFromString(text, 'text/html');
            showRows(page);
            box.querySelector('.scan-progress').replaceWith(page.querySelector('#scan .scan-progress'));
            next = box.querySelector('a[rel=next]');
        }
        const hadFocus = document.activeElement === stop;
        stop.hidden = true;
        if (hadFocus) {
            // Who uses the keyboard stays where the list goes on, or at what was found.
            const place = next || box.querySelector('.scan-progress');
            place.tabIndex = next ? 0 : -1;
            place.focus();
        }
    }

    if (box && stop && box.dataset.goesOn) {
        stop.addEventListener('click', () => { isStopped = true; });
        lookThrough();
    }
}
