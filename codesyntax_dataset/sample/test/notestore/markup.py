# -*- coding: utf-8 -*-
"""The little markup language of notes."""

import re
from html import escape

INLINE = [
    (re.compile(r'\*([^*\n]+)\*'), r'<b>\1</b>'),
    (re.compile(r'_([^_\n]+)_'), r'<i>\1</i>'),
    (re.compile(r'`([^`\n]+)`'), r'<code>\1</code>'),
    (re.compile(r'\[([^\]]+)\]\(([^) ]+)\)'), r'<a href="\2">\1</a>'),
]


def renderInline(text):
    '''Marks up bold, italic, code and links within a line.'''
    html = escape(text, quote=False)
    for pattern, replacement in INLINE:
        html = pattern.sub(replacement, html)
    return html


def renderHtml(text):
    '''
    Converts a note to HTML.

    Knows headings (# to ###), lists (lines that begin with - or a number and a dot),
    preformatted text (indented by four blanks) and paragraphs.
    '''
    out = []
    openTag = None
    for line in text.split('\n') + ['']:
        heading = re.match(r'(#{1,3}) +(.*)', line)
        if line.startswith('    '):
            wanted, html = 'pre', escape(line[4:], quote=False)
        elif re.match(r'- +\S', line):
            wanted, html = 'ul', '<li>' + renderInline(line[1:].strip()) + '</li>'
        elif re.match(r'\d+\. +\S', line):
            wanted, html = 'ol', '<li>' + renderInline(line.split('.', 1)[1].strip()) + '</li>'
        elif heading:
            level = len(heading.group(1))
            wanted, html = None, '<h%d>%s</h%d>' % (level, renderInline(heading.group(2)), level)
        elif line.strip():
            wanted, html = 'p', renderInline(line.strip())
        else:
            wanted, html = None, ''
        if wanted != openTag:
            if openTag is not None:
                out.append('</%s>' % openTag)
            if wanted is not None:
                out.append('<%s>' % wanted)
            openTag = wanted
        if html:
            out.append(html)
    return '\n'.join(out)


def outline(text):
    '''Lists the headings of a note as (level, title, line number).'''
    found = []
    for number, line in enumerate(text.split('\n'), 1):
        hashes = len(line) - len(line.lstrip('#'))
        if 1 <= hashes <= 3 and line[hashes:hashes + 1] == ' ':
            found.append((hashes, line[hashes:].strip(), number))
    return found


def todoProgress(text):
    '''
    Counts the check boxes of a note.

    Returns (done, total), where "[x]" is done and "[ ]" is not.
    '''
    boxes = re.findall(r'^\s*- \[([ xX])\]', text, flags=re.MULTILINE)
    done = sum(box in 'xX' for box in boxes)
    return done, len(boxes)


def linkTargets(text, internalOnly=False):
    '''Returns the set of addresses a note links to; those without "://" are internal.'''
    targets = {match.group(2) for match in INLINE[3][0].finditer(text)}
    if internalOnly:
        targets = {target for target in targets if '://' not in target}
    return targets
