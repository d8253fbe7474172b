# frozen_string_literal: true

require "strscan"

module Inkwell
  # A text with headings, lists and paragraphs, read line by line.
  class Document
    HEADING = /\A(?<marks>\#{1,6})\s+(?<text>.+?)\s*\z/

    attr_reader :blocks

    def initialize(source, title: nil, tabs: 4)
      @source = source.is_a?(String) ? source.lines(chomp: true) : source.to_a
      @title = title || "untitled"
      @tabs = tabs
      @blocks = []
    end

    # Splits the source into blocks. A blank line ends a paragraph.
    def parse
      paragraph = []
      @source.each_with_index do |line, number|
        line = line.gsub("\t", " " * @tabs)
        if (found = HEADING.match(line))
          flush(paragraph)
          @blocks << Heading.new(found[:text], level: found[:marks].size, line: number + 1)
        elsif line.strip.empty?
          flush(paragraph)
        else
          paragraph << line
        end
      end
      flush(paragraph)
      self
    end

    def flush(lines)
      lines.pop while lines.last&.empty?
      return if lines.empty?

      @blocks << case lines.first
                 when /\A\s*[-*] / then List.new(items_of(lines))
                 when /\A\s*\d+\. / then List.new(items_of(lines), ordered: true)
                 when /\A {4}/ then Code.new(lines.map { |line| line[4..] })
                 else Paragraph.new(lines.join(" "))
                 end
      lines.clear
    end

    # The items of a list; a line that begins without a mark continues the item before it.
    def items_of(lines)
      lines.each_with_object([]) do |line, items|
        text = line.sub(/\A\s*(?:[-*]|\d+\.) /, "")
        if text == line && !items.empty?
          items[-1] += " #{text.strip}"
        else
          items << text
        end
      end
    end

    # The headings up to a level, each with the number of blocks below it.
    def contents(deepest = 3)
      counts = Hash.new(0)
      current = nil
      for block in @blocks
        if block in Heading(level: 1..3)
          current = block
        elsif current
          counts[current] += 1
        end
      end
      counts.select { |heading, _| heading.level <= deepest }
            .map { |heading, count| { text: heading.text, level: heading.level, blocks: count } }
    end

    def to_html(wrap: true)
      body = @blocks.map { |block| block.to_html }.join("\n")
      return body unless wrap

      <<~HTML
        <!doctype html>
        <title>#{escape(@title)}</title>
        #{body}
      HTML
    end

    def escape(text)
      text.gsub(/[&<>]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;")
    end

    def self.read(path, **options)
      text = File.read(path, encoding: "UTF-8")
    rescue Errno::ENOENT, Errno::EACCES => e
      warn "#{path} cannot be read: #{e.message}"
      nil
    else
      new(text, title: File.basename(path, ".*"), **options).parse
    ensure
      @last = path
    end
  end
end
