class Router
  def initialize(&definition)
    @routes = []
    @filters = Hash.new { |hash, key| hash[key] = [] }
    instance_eval(&definition) if definition
  end

  %w[get post delete].each do |verb|
    define_method(verb) { |path, to: nil, **options, &handler| add(verb, path, to || handler, **options) }
  end

  def add(verb, path, handler, name: nil, constraints: {})
    names = path.scan(/:(\w+)/).flatten.map(&:to_sym)
    pattern = path.gsub(/:(\w+)/) { "(#{constraints.fetch($1.to_sym, /[^\/]+/).source})" }
    @routes << { verb: verb, path: path, regex: /\A#{pattern}\z/, names: names, handler: handler, name: name }
  end

  def before(path = "*", &filter)
    @filters[path] << filter
  end

  def call(env)
    verb, path = env.values_at("REQUEST_METHOD", "PATH_INFO")
    route, values = find(verb.downcase, path)
    return not_found(path) if !route

    run_filters(path, env)
    status, body = route[:handler].call(values, env)
    [status, { "content-type" => "text/html", "content-length" => body.bytesize.to_s }, [body]]
  rescue Halt => halt
    halt.response
  rescue StandardError => error
    env["rack.errors"]&.puts(error.full_message)
    [500, {}, ["something went wrong"]]
  ensure
    env["router.took"] = Process.clock_gettime(Process::CLOCK_MONOTONIC) - env.fetch("router.began", 0)
  end

  def find(verb, path)
    @routes.each do |route|
      next unless route[:verb] == verb
      next unless (found = route[:regex].match(path))

      return route, route[:names].zip(found.captures).to_h
    end
    verb == "head" ? find("get", path) : nil
  end

  def run_filters(path, env)
    @filters.each do |pattern, filters|
      filters.each { |filter| filter.call(env) } if File.fnmatch?(pattern, path)
    end
  end

  def url(name, **values)
    route = @routes.find { |candidate| candidate[:name] == name } or raise KeyError, "no route #{name}"
    values.inject(route[:path].dup) do |path, (key, value)|
      path.sub(":#{key}", value.to_s)
    end
  end

  def not_found(path)
    close = @routes.map { |route| route[:path] }.min_by { |other| distance(path, other) }
    [404, {}, [close ? "did you mean #{close}?" : "not found"]]
  end

  # Levenshtein's distance between two paths.
  def distance(a, b)
    costs = (0..b.size).to_a
    for i in 1..a.size
      previous, costs[0] = costs[0], i
      1.upto(b.size) do |j|
        cost = a[i - 1] == b[j - 1] ? 0 : 1
        previous, costs[j] = costs[j], [costs[j] + 1, costs[j - 1] + 1, previous + cost].min
      end
    end
    costs.last
  end
end
