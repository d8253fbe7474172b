package textindex

// Distance counts the insertions, deletions and replacements from one word to another.
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(from); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(to); j++ {
			cost := diagonal
			if from[i-1] != to[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(to)]
}

func min[T int | float64](first T, others ...T) T {
	for _, other := range others {
		if other < first {
			first = other
		}
	}
	return first
}

// CommonPrefix is how two words begin alike.
func CommonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// Chunks cuts a list into pieces of at most a size.
func Chunks[T any](items []T, size int) [][]T {
	var chunks [][]T
	for start := 0; start < len(items); start += size {
		end := start + size
		if end > len(items) {
			end = len(items)
		}
		chunks = append(chunks, items[start:end:end])
	}
	return chunks
}

// Find looks for a word in a sorted list.
func Find(words []string, word string) (int, bool) {
	low, high := 0, len(words)
	for low < high {
		middle := (low + high) / 2
		if words[middle] == word {
			return middle, true
		} else if words[middle] < word {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, false
}

// Stem takes usual endings from an English word.
func Stem(word string) string {
	endings := map[string]string{"ies": "y", "ing": "", "ed": "", "s": ""}
	length := 3
shorter:
	for ; length > 0; length-- {
		if len(word) < length+3 {
			continue shorter
		}
		cut := len(word) - length
		if replacement, known := endings[word[cut:]]; known {
			return word[:cut] + replacement
		}
	}
	return word
}

// Grams counts the substrings of n bytes.
func Grams(text string, n int) map[string]int {
	counts := map[string]int{}
scan:
	for i := 0; ; i++ {
		switch {
		case i+n > len(text):
			break scan
		case text[i] == ' ' || text[i+n-1] == ' ':
			continue scan
		}
		counts[text[i:i+n]]++
	}
	return counts
}
