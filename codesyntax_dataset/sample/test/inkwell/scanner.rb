module Inkwell
  # Emphasis, code and links inside of a line.
  class Scanner
    MARKS = { "*" => :em, "**" => :strong, "`" => :code }.freeze

    def initialize(text)
      @scanner = StringScanner.new(text)
      @open = []
    end

    def each
      return enum_for(:each) unless block_given?

      until @scanner.eos?
        if (text = @scanner.scan(/[^*`\[]+/))
          yield [:text, text]
        elsif (mark = @scanner.scan(/\*\*|[*`]/))
          yield toggle(mark)
        else
          yield link || [:text, @scanner.getch]
        end
      end
      yield [:close, @open.pop] while @open.any?
    end

    def toggle(mark)
      name = MARKS.fetch(mark)
      if @open.last == name
        [:close, @open.pop]
      else
        @open.push(name)
        [:open, name]
      end
    end

    def link
      start = @scanner.pos
      return unless @scanner.skip(/\[/)

      label = @scanner.scan_until(/\]\(/)&.delete_suffix("](")
      target = label && @scanner.scan_until(/\)/)
      if !target
        @scanner.pos = start
        return nil
      end
      [:link, label, target.chop]
    end

    # How deep the marks are nested, at most.
    def depth
      deepest = now = 0
      each do |kind, _|
        now += kind == :open ? 1 : 0
        now -= 1 if kind == :close
        deepest = now if now > deepest
      end
      deepest
    end
  end
end
