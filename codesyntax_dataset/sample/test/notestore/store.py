# -*- coding: utf-8 -*-
"""Notes with tags, kept in SQLite."""

import json
import shutil
import sqlite3
import time


class StoreError(Exception):
    pass


class NoteStore:
    def __init__(self, filename=':memory:', readOnly=False):
        """Open the database and create the tables on first use."""
        self.filename = filename
        self.readOnly = readOnly
        self.db = sqlite3.connect(filename)
        self.db.row_factory = sqlite3.Row
        self.db.executescript('''
            create table if not exists note (id integer primary key, title text, body text, changed real);
            create table if not exists tag (note integer, name text, unique (note, name));
        ''')

    def addNote(self, title, body='', tags=()):
        '''
        Adds a note and returns its id.

        The note and its tags are stored together or not at all.
        '''
        if self.readOnly:
            raise StoreError('%s was opened for reading only' % self.filename)
        cursor = self.db.cursor()
        try:
            cursor.execute('insert into note (title, body, changed) values (?, ?, ?)', (title, body, time.time()))
            noteId = cursor.lastrowid
            for tag in tags:
                cursor.execute('insert into tag values (?, ?)', (noteId, tag.strip().lower()))
        except sqlite3.Error as e:
            self.db.rollback()
            raise StoreError('cannot store note %r: %s' % (title, e))
        else:
            self.db.commit()
        finally:
            cursor.close()
        return noteId

    def getNote(self, noteId):
        '''
        Returns a note as a dict, with a sorted list of its tags, or None if there is none
        with this id.
        '''
        row = self.db.execute('select * from note where id = ?', (noteId,)).fetchone()
        if row is None:
            return None
        note = dict(row)
        tags = self.db.execute('select name from tag where note = ? order by name', (noteId,))
        note['tags'] = [r['name'] for r in tags]
        return note

    def search(self, words, tag=None, limit=20):
        '''
        Finds the notes in which all the words occur, latest change first.

        words  -- a string; its words may occur in title or body, in any case
        tag    -- look only at notes with this tag
        limit  -- how many to return at most
        '''
        sql = 'select distinct note.* from note'
        where = []
        args = []
        if tag:
            sql += ' join tag on tag.note = note.id'
            where.append('tag.name = ?')
            args.append(tag.lower())
        for word in words.split():
            # The user's own % and _ are no wildcards.
            for special in '\\%_':
                word = word.replace(special, '\\' + special)
            where.append("(title || ' ' || body) like ? escape '\\'")
            args.append('%' + word + '%')
        if where:
            sql += ' where ' + ' and '.join(where)
        sql += ' order by changed desc, id desc limit ?'
        return [dict(row) for row in self.db.execute(sql, args + [limit])]

    def tagCloud(self, sizes=5):
        '''Maps each tag to a font size from 1 to sizes, by how often it is used.'''
        counts = dict(self.db.execute('select name, count(*) from tag group by name').fetchall())
        if not counts:
            return {}
        low, high = min(counts.values()), max(counts.values())
        spread = max(high - low, 1)
        return {name: 1 + (count - low) * (sizes - 1) // spread for name, count in counts.items()}

    def exportJson(self, filename):
        '''
        Writes all notes to a file that importJson can read. Returns the number of notes.
        '''
        ids = [row[0] for row in self.db.execute('select id from note order by id')]
        notes = [self.getNote(noteId) for noteId in ids]
        with open(filename, 'w') as f:
            json.dump({'version': 1, 'notes': notes}, f, indent=1, sort_keys=True)
        return len(notes)

    def importJson(self, filename, skipDuplicates=True):
        '''
        Adds the notes of an exported file; they get new ids.

        Returns the ids of the new notes. With skipDuplicates, a note is left out when one with
        the same title and body exists.
        '''
        try:
            f = open(filename)
        except IOError as e:
            raise StoreError('cannot open %s: %s' % (filename, e.strerror))
        try:
            data = json.load(f)
        except ValueError:
            raise StoreError('%s is not a JSON file' % filename)
        finally:
            f.close()
        if data.get('version') != 1:
            raise StoreError('%s has version %s, expected 1' % (filename, data.get('version')))
        known = set()
        if skipDuplicates:
            known = {(row[0], row[1]) for row in self.db.execute('select title, body from note')}
        added = []
        for note in data['notes']:
            if (note['title'], note['body']) not in known:
                added.append(self.addNote(note['title'], note['body'], tags=note.get('tags', [])))
        return added

    def backup(self, filename, retries=3, wait=0.5):
        '''Copies the database file while nobody can write to it; tries again if it is locked.'''
        if self.filename == ':memory:':
            raise StoreError('a database in memory has no file to copy')
        while True:
            try:
                self.db.execute('begin immediate')
                shutil.copyfile(self.filename, filename)
            except sqlite3.OperationalError as e:
                if retries <= 0:
                    raise StoreError('database stays locked: %s' % e)
                retries -= 1
                time.sleep(wait)
            else:
                return filename
            finally:
                if self.db.in_transaction:
                    self.db.rollback()
