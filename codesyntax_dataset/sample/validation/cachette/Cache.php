<?php

namespace Cachette;

/** Values in files, for a time. */
class Cache
{
    public function __construct(private string $folder, private int $seconds = 3600)
    {
        is_dir($folder) || mkdir($folder, 0o755, recursive: true);
    }

    public function get(string $key, callable $make): mixed
    {
        $path = $this->path($key);
        if (is_file($path) && filemtime($path) + $this->seconds > time()) {
            return unserialize(file_get_contents($path), ['allowed_classes' => false]);
        } else {
            $value = $make($key);
            $this->put($key, $value);
        }

        return $value;
    }

    public function put(string $key, mixed $value): void
    {
        $file = fopen($this->path($key), 'c');
        try {
            flock($file, LOCK_EX);
            ftruncate($file, 0);
            fwrite($file, serialize($value));
        } catch (\Exception $error) {
            error_log($error->getMessage());
        } finally {
            fclose($file);
        }
    }

    private function path(string $key): string
    {
        return $this->folder . '/' . hash('xxh3', $key) . '.cache';
    }

    /** Removes what is too old, and says how many files that were. */
    public function sweep(?\Closure $old = null): int
    {
        $old ??= fn (string $path) => filemtime($path) + $this->seconds < time();
        $removed = 0;
        foreach (glob("{$this->folder}/*.cache") as $path) {
            if ($old($path)) {
                unlink($path);
                $removed++;
            }
        }

        return $removed;
    }

    public static function seconds(string|\DateInterval $time): int
    {
        if ($time instanceof \DateInterval) {
            return ($time->days * 24 + $time->h) * 3600 + $time->i * 60 + $time->s;
        }
        $number = (int) $time;
        switch (substr($time, -1)) {
            case 'd':
                $number *= 24;
                // no break
            case 'h':
                $number *= 60;
                // no break
            case 'm':
                return $number * 60;
            default:
                return $number;
        }
    }

    /** The size of all files in words, such as "2.4 MB". */
    public function size(): string
    {
        $bytes = array_sum(array_map('filesize', glob("{$this->folder}/*.cache")));
        $units = ['bytes', 'KB', 'MB', 'GB'];
        while ($bytes >= 1000 && count($units) > 1) {
            $bytes /= 1000;
            array_shift($units);
        }

        return round($bytes, precision: 1) . " $units[0]";
    }
}
