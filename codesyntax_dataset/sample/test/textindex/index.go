// Package textindex finds documents by the words in them.
package textindex

import (
	"bufio"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"unicode"
)

// Index has, for each word, how often it occurs in which document.
type Index struct {
	postings map[string]map[int]int
	names    []string
	lengths  []int
}

// Hit is a document that was found.
type Hit struct {
	Name  string
	Score float64
}

// NewIndex returns an index without documents.
func NewIndex() *Index {
	return &Index{postings: make(map[string]map[int]int)}
}

// Words splits a text at all that is neither a letter nor a digit.
func Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// Add reads a document line by line.
func (x *Index) Add(name string, document io.Reader) error {
	number := len(x.names)
	x.names, x.lengths = append(x.names, name), append(x.lengths, 0)
	lines := bufio.NewScanner(document)
	for lines.Scan() {
		for _, word := range Words(lines.Text()) {
			counts, known := x.postings[word]
			if !known {
				counts = map[int]int{}
				x.postings[word] = counts
			}
			counts[number]++
			x.lengths[number]++
		}
	}
	return lines.Err()
}

// AddFolder adds all files with an extension.
func (x *Index) AddFolder(folder, extension string) error {
	return filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != extension {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return x.Add(path, file)
	})
}

// Search ranks the documents by the sum of TF-IDF over the words of a query.
func (x *Index) Search(query string, most int) []Hit {
	scores := map[int]float64{}
	for _, word := range Words(query) {
		counts := x.postings[word]
		if len(counts) == 0 {
			continue
		}
		rarity := math.Log(float64(len(x.names)) / float64(len(counts)))
		for number, count := range counts {
			scores[number] += float64(count) / float64(x.lengths[number]) * (1 + rarity)
		}
	}
	hits := make([]Hit, 0, len(scores))
	for number, score := range scores {
		hits = append(hits, Hit{Name: x.names[number], Score: score})
	}
	sort.Slice(hits, func(i, j int) bool {
		if hits[i].Score == hits[j].Score {
			return hits[i].Name < hits[j].Name
		}
		return hits[i].Score > hits[j].Score
	})
	if len(hits) > most {
		hits = hits[:most]
	}
	return hits
}

// Snippet cuts a text around the first occurrence of a word.
func Snippet(text, word string, margin int) string {
	at := strings.Index(strings.ToLower(text), strings.ToLower(word))
	if at < 0 {
		return ""
	}
	first, last := at-margin, at+len(word)+margin
	before, after := "…", "…"
	if first <= 0 {
		first, before = 0, ""
	}
	if last >= len(text) {
		last, after = len(text), ""
	}
	return before + text[first:last] + after
}

// Merge adds the documents of another index.
func (x *Index) Merge(other *Index) {
	offset := len(x.names)
	x.names = append(x.names, other.names...)
	x.lengths = append(x.lengths, other.lengths...)
	for word, counts := range other.postings {
		if ours, known := x.postings[word]; known {
			for number, count := range counts {
				ours[offset+number] = count
			}
		} else {
			shifted := make(map[int]int, len(counts))
			for number, count := range counts {
				shifted[offset+number] = count
			}
			x.postings[word] = shifted
		}
	}
}
