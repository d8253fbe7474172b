<?php

declare(strict_types=1);

namespace Pollbox;

/** A question with some answers, each person of which may choose one. */
final class Poll
{
    /** @var array<string, string> voter -> answer */
    private array $votes = [];

    public function __construct(
        public readonly string $question,
        private array $answers,
        private ?\DateTimeInterface $closes = null,
    ) {
        if (count($answers) < 2) {
            throw new \LengthException('a poll has two answers at least');
        }
    }

    public function vote(string $voter, string $answer): void
    {
        if ($this->closes !== null && new \DateTime('now') > $this->closes) {
            throw new PollClosed($this->question, at: $this->closes);
        }
        if (!in_array($answer, $this->answers, strict: true)) {
            throw new UnknownAnswer($answer);
        }
        $this->votes[$voter] = $answer;
    }

    /** Answer -> number of votes, the most popular first. */
    public function counts(): array
    {
        $counts = array_fill_keys($this->answers, 0);
        foreach ($this->votes as $answer) {
            $counts[$answer] += 1;
        }
        arsort($counts);

        return $counts;
    }

    public function winner(): ?string
    {
        $counts = $this->counts();
        [$first, $second] = array_slice(array_keys($counts), 0, 2);

        return $counts[$first] > $counts[$second] ? $first : null;
    }

    /** One answer and its bar after the other. */
    public function bars(int $width = 40): \Generator
    {
        $most = max(1, ...array_values($this->counts()));
        foreach ($this->counts() as $answer => $count) {
            $bar = '';
            for ($i = 0; $i < $width * $count / $most; $i++) {
                $bar .= '#';
            }
            yield $answer => $bar;
        }
    }

    /** Draws a winner by lot if two answers have as many votes. */
    public function drawn(\Closure $random): string
    {
        do {
            $answer = $this->winner() ?? $random($this->answers);
        } while (!isset($answer));

        return $answer;
    }
}
