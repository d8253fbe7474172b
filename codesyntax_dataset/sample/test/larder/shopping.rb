module Shopping
  module_function

  # What has to be bought, shelf by shelf.
  def list(wanted, pantry, shelves: {})
    missing = wanted.to_h { |name, amount| [name, amount - pantry.total(name)] }
    missing.reject! { |_, amount| amount <= 0 }
    missing.group_by { |name, _| shelves.fetch(name, "elsewhere") }.sort.each do |shelf, items|
      puts shelf.upcase
      items.each { |item| puts format("  %-20s %6.1f", *item) }
    end
  end

  def price(items, prices, discount: 0)
    sum = 0
    items.each do |name, amount|
      begin
        sum += prices.fetch(name) * amount
      rescue KeyError
        warn "no price for #{name}"
      end
    end
    discount > 0 ? sum * (1 - discount / 100.0) : sum
  end

  def budget(items, prices, most)
    chosen = items.dup
    while price(chosen, prices) > most
      chosen.pop
    end
    chosen
  end

  def ask(question, input: $stdin, default: nil)
    begin
      print question, default ? " [#{default}] " : " "
      answer = input.gets&.strip
    end while answer == ""
    answer || default
  end

  def pages(items, size = 20)
    start = 0
    begin
      yield items[start, size], start / size + 1
      start += size
    end until start >= items.size
  end

  def parse(line)
    line = line.chop while line.end_with?(".")
    case line.split
    in [amount, unit, *words] if amount.match?(/\A\d+\z/)
      { name: words.join(" "), amount: amount.to_i, unit: }
    in [name]
      { name: name, amount: 1, unit: "piece" }
    else
      raise ArgumentError, "cannot read #{line.inspect}"
    end
  end
end
