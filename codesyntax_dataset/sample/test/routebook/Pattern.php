<?php

namespace Routebook;

/** A path with parameters, as a list of texts and parameters. */
class Pattern
{
    /** @var list<string|Parameter> */
    private $parts = [];

    /**
     * Splits a pattern at its curly brackets.
     *
     * @throws PatternError for brackets without a partner
     */
    public static function parse(string $text): self
    {
        $pattern = new self();
        $length = strlen($text);
        $start = 0;
        for ($i = 0, $depth = 0; $i < $length; $i++) {
            switch ($text[$i]) {
                case '{':
                    if ($depth++ === 0) {
                        $pattern->push(substr($text, $start, $i - $start));
                        $start = $i + 1;
                    }
                    break;
                case '}':
                    if (--$depth < 0) {
                        throw new PatternError('} without {', $i);
                    } elseif ($depth === 0) {
                        [$name, $expression] = explode(':', substr($text, $start, $i - $start), 2) + [1 => '[^/]+'];
                        $pattern->push(new Parameter($name, $expression));
                        $start = $i + 1;
                    }
                    break;
                default:
                    // text, or part of a regular expression
            }
        }
        if ($depth > 0) {
            throw new PatternError('{ without }', $start - 1);
        }
        $pattern->push(substr($text, $start));

        return $pattern;
    }

    private function push(string|Parameter $part): void
    {
        if ($part !== '') {
            $this->parts[] = $part;
        }
    }

    public function regex(): string
    {
        $regex = '';
        foreach ($this->parts as $part) {
            $regex .= $part instanceof Parameter ? "(?<{$part->name}>{$part->expression})" : preg_quote($part, '~');
        }

        return "~^$regex$~";
    }

    /** How specific a pattern is: of two that match, the one with more text wins. */
    public function weight(): int
    {
        $weight = 0;
        foreach ($this->parts as $place => $part) {
            $weight += match (true) {
                is_string($part) => 4 * strlen($part),
                $part->expression === '[^/]+' => 1,
                default => 2 + ($place === 0 ? 1 : 0),
            };
        }

        return $weight;
    }

    public function fill(array $values): string
    {
        $path = '';
        foreach ($this->parts as $part) {
            if (is_string($part)) {
                $path .= $part;
                continue;
            }
            if (!isset($values[$part->name])) {
                throw new PatternError("no value for {$part->name}");
            }
            $path .= rawurlencode((string) $values[$part->name]);
            unset($values[$part->name]);
        }

        return $values === [] ? $path : $path . '?' . http_build_query($values);
    }
}
