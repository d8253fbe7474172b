package wordbank;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * A dictionary of words that share their beginnings.
 */
public class Trie {

	private static class Node {
		final Map<Character, Node> children = new TreeMap<Character, Node>();
		int count;
	}

	private final Node root = new Node();
	private int distinct;

	/**
	 * Adds a word.
	 *
	 * @return how often it has been added so far
	 */
	public int add(String word) {
		Node node = root;
		for (int i = 0; i < word.length(); i++) {
			char letter = word.charAt(i);
			Node child = node.children.get(letter);
			if (child == null) {
				child = new Node();
				node.children.put(letter, child);
			}
			node = child;
		}
		if (node.count == 0)
			distinct++;
		return ++node.count;
	}

	/**
	 * Number of different words.
	 */
	public int distinct() {
		return distinct;
	}

	/**
	 * Finds the node at the end of a prefix, or null.
	 */
	private Node find(String prefix) {
		Node node = root;
		for (int i = 0; i < prefix.length() && node != null; i++) {
			node = node.children.get(prefix.charAt(i));
		}
		return node;
	}

	/**
	 * How often a word was added.
	 */
	public int count(String word) {
		Node node = find(word);
		return node == null ? 0 : node.count;
	}

	/**
	 * Lists words with a given beginning in alphabetical order.
	 *
	 * @param limit how many at most
	 */
	public List<String> complete(String prefix, int limit) {
		List<String> words = new ArrayList<String>();
		Node start = find(prefix);
		if (start != null)
			collect(start, new StringBuilder(prefix), limit, words);
		return words;
	}

	/**
	 * Collects the words below a node, itself included.
	 */
	private static void collect(Node node, StringBuilder path, int limit, List<String> words) {
		if (words.size() >= limit)
			return;
		if (node.count > 0)
			words.add(path.toString());
		for (Map.Entry<Character, Node> child : node.children.entrySet()) {
			path.append(child.getKey().charValue());
			collect(child.getValue(), path, limit, words);
			path.setLength(path.length() - 1);
		}
	}

	/**
	 * Finds the longest word that a text begins with at a position.
	 *
	 * @return its length, 0 if there is none
	 */
	public int longestMatch(String text, int position) {
		Node node = root;
		int longest = 0;
		int i = position;
		do {
			if (node.count > 0)
				longest = i - position;
			node = i < text.length() ? node.children.get(text.charAt(i)) : null;
			i++;
		} while (node != null);
		return longest;
	}

	/**
	 * Splits a text without blanks into known words, taking the longest one each time.
	 *
	 * @return null if that does not work out
	 */
	public List<String> segment(String text) {
		List<String> words = new ArrayList<String>();
		int position = 0;
		while (position < text.length()) {
			int length = longestMatch(text, position);
			if (length == 0)
				return null;
			words.add(text.substring(position, position + length));
			position += length;
		}
		return words;
	}

	/**
	 * Whether a pattern with dots for any letter matches a word.
	 */
	public boolean matches(String pattern) {
		List<Node> level = new ArrayList<Node>();
		level.add(root);
		for (char wanted : pattern.toCharArray()) {
			List<Node> next = new ArrayList<Node>();
			for (Node node : level) {
				if (wanted == '.')
					next.addAll(node.children.values());
				else if (node.children.containsKey(wanted))
					next.add(node.children.get(wanted));
			}
			level = next;
		}
		for (Node node : level) {
			if (node.count > 0)
				return true;
		}
		return false;
	}
}
