package wordbank;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Counts words and letters.
 */
public final class WordCounter {

	private final Map<String, int[]> counts = new HashMap<String, int[]>();

	/**
	 * Counts the words of a text; upper and lower case are the same.
	 */
	public void read(String text) {
		int start = -1;
		for (int i = 0; i <= text.length(); i++) {
			boolean inWord = i < text.length() && Character.isLetter(text.charAt(i));
			if (inWord && start < 0) {
				start = i;
			} else if (!inWord && start >= 0) {
				count(text.substring(start, i).toLowerCase(Locale.ROOT));
				start = -1;
			}
		}
	}

	/**
	 * Adds one to the count of a word.
	 */
	private void count(String word) {
		int[] count = counts.get(word);
		if (count == null)
			counts.put(word, new int[] { 1 });
		else
			count[0]++;
	}

	/**
	 * Words that occur often enough, in alphabetical order.
	 */
	public String[] frequent(int least) {
		String[] words = new String[counts.size()];
		int n = 0;
		for (Map.Entry<String, int[]> entry : counts.entrySet()) {
			if (entry.getValue()[0] >= least)
				words[n++] = entry.getKey();
		}
		String[] result = Arrays.copyOf(words, n);
		Arrays.sort(result);
		return result;
	}

	/**
	 * Tells whether two words consist of the same letters.
	 */
	public static boolean isAnagram(String a, String b) {
		int[] letters = new int[128];
		for (char c : a.toCharArray())
			letters[c & 127]++;
		for (char c : b.toCharArray())
			letters[c & 127]--;
		for (int count : letters) {
			if (count != 0)
				return false;
		}
		return a.length() == b.length();
	}

	/**
	 * Estimates the number of syllables of an English word: groups of vowels, but no silent e.
	 */
	public static int syllables(String word) {
		int groups = 0;
		boolean inGroup = false;
		for (int i = 0; i < word.length(); i++) {
			switch (word.charAt(i)) {
			case 'a':
			case 'e':
			case 'i':
			case 'o':
			case 'u':
			case 'y':
				if (!inGroup)
					groups++;
				inGroup = true;
				break;
			default:
				inGroup = false;
			}
		}
		if (groups > 1 && word.endsWith("e") && !word.endsWith("le"))
			groups--;
		return Math.max(groups, 1);
	}
}
