# Whether Ruby itself reads methods: one in Base64 on each line in, `error` out if it does not.
$stdout.sync = true
while (line = gets)
  begin
    RubyVM::AbstractSyntaxTree.parse(line.unpack1("m").force_encoding("UTF-8"))
  rescue SyntaxError
    puts "error"
  end
  puts "end"
end
