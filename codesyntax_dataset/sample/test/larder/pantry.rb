require "date"
require "json"

# What is in the kitchen, until when it keeps, and what can be cooked from it.
class Pantry
  Item = Struct.new(:name, :amount, :unit, :best_before)
  class Missing < StandardError; end

  UNITS = { "g" => 1, "kg" => 1000, "ml" => 1, "l" => 1000, "piece" => 1 }

  def initialize(file, today: Date.today)
    @file = file
    @today = today
    @items = []
    load
  end

  def load
    @items = JSON.parse(File.read(@file)).map do |row|
      Item.new(*row.values_at("name", "amount", "unit"), row["best_before"] && Date.parse(row["best_before"]))
    end
  rescue Errno::ENOENT
    @items = []
  rescue JSON::ParserError => error
    raise "#{@file} is damaged: #{error.message}"
  else
    @items.sort_by! { |item| item.best_before || Date::Infinity.new }
  ensure
    @loaded_at = Time.now
  end

  def save
    number = 0
    begin
      number += 1
      temporary = "#{@file}.#{number}"
    end while File.exist?(temporary)
    begin
      File.open(temporary, "w") { |file| file.puts JSON.pretty_generate(@items.map(&:to_h)) }
      File.rename(temporary, @file)
    rescue SystemCallError => error
      warn error.message
      false
    else
      true
    ensure
      File.delete(temporary) if File.exist?(temporary)
    end
  end

  def add(name, amount, unit = "piece", keeps: nil)
    raise ArgumentError, "unknown unit #{unit}" unless UNITS.key?(unit)

    item = @items.find { |other| other.name == name && other.unit == unit }
    if item && item.best_before.nil?
      item.amount += amount
    else
      @items << Item.new(name, amount, unit, keeps ? @today + keeps : nil)
    end
    self
  end

  # Takes an amount out, the oldest first.
  def take(name, amount)
    available = @items.select { |item| item.name == name }
    while amount > 0 && (item = available.shift)
      taken = [item.amount, amount].min
      item.amount -= taken
      amount -= taken
      @items.delete(item) if item.amount.zero?
    end
    raise Missing, name if amount > 0
  end

  def urgent(days = 3)
    limit = @today..(@today + days)
    @items.select { |item| item.best_before and limit.cover?(item.best_before) }
  end

  # The share of a recipe's ingredients that is there.
  def covers(recipe)
    there = 0
    for name, amount in recipe.ingredients
      there += 1 if total(name) >= amount
    end
    there.fdiv(recipe.ingredients.size)
  end

  def total(name)
    @total ||= {}
    @total[name] ||= @items.sum { |item| item.name == name ? item.amount * UNITS[item.unit] : 0 }
  end

  def state(item)
    left = (item.best_before - @today).to_i rescue 999
    case left
    when ...0 then :spoilt
    when 0..3 then :urgent
    when 4..14
      :soon
    else
      :fine
    end
  end

  def plan(recipes, days)
    menu = {}
    (1..days).each do |day|
      best = recipes.reject { |recipe| menu.value?(recipe) }.max_by { |recipe| covers(recipe) }
      break unless best

      menu[@today + day] = best
      best.ingredients.each { |name, amount| take(name, amount) rescue next }
    end
    menu
  end
end
