# Who works when: shifts are given to the people with the fewest hours.
class Shifts
  def initialize(people, hours: 8)
    @people = people
    @hours = hours
    @worked = Hash.new(0)
  end

  def assign(days)
    plan = {}
    while (day = days.shift)
      person = available(day).min_by { |one| @worked[one] }
      plan[day] = person
      @worked[person] += @hours if person
    end
    plan
  end

  def available(day)
    @people.select { |person| !person.away?(day) }
  end

  def fair?(tolerance = 4)
    least, most = @worked.values.minmax
    least.nil? ? true : most - least <= tolerance
  end

  def report(out: $stdout)
    width = @people.map { |person| person.name.size }.max
    @people.each do |person|
      begin
        out.puts format("%-#{width}s %4d", person.name, @worked[person])
      rescue Errno::EPIPE
        break
      end
    end
  end
end
