<?php

namespace Feedloom;

/** Reads news feeds, RSS or Atom, into one kind of entry. */
class Reader
{
    protected $client;
    protected $cache = array();

    public function __construct($client = null)
    {
        $this->client = $client ?: new Client(array('timeout' => 10, 'agent' => 'feedloom/1.0'));
    }

    /**
     * @param string[] $urls
     * @return Entry[] the newest first
     */
    public function readAll(array $urls, $limit = 50)
    {
        $entries = array();
        foreach ($urls as $url) {
            try {
                $entries = [...$entries, ...$this->read($url)];
            } catch (FeedError $error) {
                trigger_error("$url: " . $error->getMessage(), E_USER_NOTICE);
            }
        }
        usort($entries, function ($a, $b) {
            return $b->published - $a->published;
        });

        return array_slice($entries, 0, $limit);
    }

    public function read($url)
    {
        if (isset($this->cache[$url]) && $this->cache[$url]['until'] > time()) {
            return $this->cache[$url]['entries'];
        }
        $document = simplexml_load_string($this->client->get($url)->body);
        if ($document === false) {
            throw new FeedError('not XML');
        } else if ($document->getName() === 'rss') {
            $entries = $this->fromRss($document->channel);
        } else if ($document->getName() === 'feed') {
            $entries = $this->fromAtom($document);
        } else {
            throw new FeedError('neither RSS nor Atom: ' . $document->getName());
        }
        $this->cache[$url] = array('entries' => $entries, 'until' => time() + 300);

        return $entries;
    }

    private function fromRss(\SimpleXMLElement $channel): array
    {
        $entries = [];
        foreach ($channel->item as $item) {
            $entry = new Entry((string) $item->title, (string) $item->link);
            $entry->published = strtotime($item->pubDate) or $entry->published = time();
            $entry->text = self::plain($item->description);
            $entries[] = $entry;
        }

        return $entries;
    }

    private function fromAtom(\SimpleXMLElement $feed): array
    {
        $entries = [];
        for ($i = 0; $i < count($feed->entry); ++$i) {
            $node = $feed->entry[$i];
            $link = $node->link;
            while ($link->count() > 0 && (string) $link['rel'] !== 'alternate') {
                $link = $link[1] ?? $link->next();
            }
            $entry = new Entry((string) $node->title, (string) $link['href']);
            $entry->published = strtotime($node->updated);
            $entry->text = self::plain($node->content instanceof \SimpleXMLElement ? $node->content : $node->summary);
            $entries[] = $entry;
        }

        return $entries;
    }

    public static function plain($html, $length = 200)
    {
        $text = trim(preg_replace('/\s+/u', ' ', strip_tags($html)));
        if (mb_strlen($text) <= $length)
            return $text;
        $cut = mb_strrpos(mb_substr($text, 0, $length), ' ');

        return mb_substr($text, 0, $cut === false ? $length : $cut) . '…';
    }

    /** Entries as they come, without the same link twice. */
    public function stream(array $urls): \Generator
    {
        $seen = [];
        foreach ($urls as $url) {
            foreach ($this->read($url) as $entry) {
                if ($seen[$entry->link] ?? false) {
                    continue;
                }
                $seen[$entry->link] = true;
                $wanted = yield $entry;
                if ($wanted === false) {
                    return count($seen);
                }
            }
        }

        return count($seen);
    }

    public function save(string $path): void
    {
        $file = fopen($path, 'w');
        if (!$file) {
            throw new FeedError("$path cannot be written");
        }
        try {
            flock($file, LOCK_EX);
            fwrite($file, json_encode($this->cache, flags: JSON_PRETTY_PRINT | JSON_THROW_ON_ERROR));
        } catch (\JsonException $error) {
            throw new FeedError('cannot be saved', previous: $error);
        } finally {
            fclose($file);
        }
    }
}
