require "time"

module Tidemark
  # Appointments of one person, in order.
  class Calendar
    include Enumerable

    def initialize(entries = [])
      @entries = entries.sort_by(&:start)
    end

    def each(&block)
      return to_enum unless block

      @entries.each { |entry| yield entry }
    end

    def add(title, start, minutes: 60, notes: nil)
      entry = Entry.new(title, start, start + 60 * minutes, notes: notes)
      clash = @entries.find { |other| other.overlaps?(entry) }
      raise Clash.new(entry, with: clash) if clash

      @entries.insert(@entries.bsearch_index { |other| other.start >= start } || -1, entry)
      self
    end

    # The first gap of this length, by hours of the day.
    def free(minutes, hours: 9..17, from: Time.now)
      start = from
      for entry in @entries
        return start if entry.start - start >= 60 * minutes && hours.cover?(start.hour)
        start = entry.finish
      end
      start += 3600 until hours.cover?(start.hour)
      start
    end

    def week(day)
      first = day + 1
      begin
        first -= 1
      end until first.sunday?
      rows = Array.new(7) { |i| [first + i, []] }
      @entries.each do |entry|
        offset = (entry.start.to_date - first).to_i
        rows[offset][1] << entry if (0...7).include?(offset)
      end
      rows.to_h
    end

    def self.load(path)
      lines = File.readlines(path, chomp: true)
    rescue Errno::ENOENT
      new
    else
      new(lines.map { |line| Entry.parse(line) })
    ensure
      puts "read #{path}"
    end
  end
end
