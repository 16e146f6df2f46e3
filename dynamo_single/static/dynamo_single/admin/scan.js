'use strict';
// Looks through a large list, step after step, until somebody stops it; without scripts each step is a link.
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

    async function lookThrough() {
        let next = box.querySelector('a[rel=next]');
        stop.hidden = !next;
        while (next && !isStopped) {
            const answer = await fetch(next.href, {credentials: 'same-origin'});
            if (!answer.ok || answer.redirected) {
                break;
            }
            const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
            showRows(page);
            box.querySelector('.scan-progress').replaceWith(page.querySelector('#scan .scan-progress'));
            next = box.querySelector('a[rel=next]');
        }
        stop.hidden = true;
    }

    if (box && stop) {
        stop.addEventListener('click', () => { isStopped = true; });
        lookThrough();
    }
}
