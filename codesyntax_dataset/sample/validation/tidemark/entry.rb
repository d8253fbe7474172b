module Tidemark
  class Entry
    attr_reader :title, :start, :finish, :notes

    def initialize(title, start, finish, notes: nil)
      @title, @start, @finish = title, start, finish
      @notes = notes
    end

    def overlaps?(other)
      start < other.finish and other.start < finish
    end

    def self.parse(line)
      start, finish, title = line.split("|", 3)
      unless title
        raise ArgumentError, "no title in #{line.inspect}"
      end
      new(title.strip, *[start, finish].map { |time| Time.iso8601(time) })
    end

    def length
      minutes = ((finish - start) / 60).round
      if minutes < 60
        "#{minutes} min"
      elsif minutes % 60 == 0
        "#{minutes / 60} h"
      else
        "#{minutes / 60} h #{minutes % 60} min"
      end
    end

    def colour
      case title
      when /\A(call|phone)/i then :green
      when "lunch"
        :yellow
      else
        :blue
      end
    end

    def to_h
      { title: title, start: start.iso8601, minutes: ((finish - start) / 60).to_i, notes: }
    end
  end
end
