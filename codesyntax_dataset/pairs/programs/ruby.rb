# What Ruby says about texts; `__init__.py` says what is read and written.
$VERBOSE = nil
$stdout.sync = true
while (line = $stdin.gets)
  last, text = line.split
  begin
    RubyVM::InstructionSequence.compile(text.unpack1("m0").force_encoding("UTF-8"), "f") # it is not run
    puts "valid"
  rescue SyntaxError => error
    place = error.message[/^[^\n]*?:(\d+):/, 1].to_i
    ends = error.message.lines.first.to_s.match?(/end-of-input|end of (file|input)/)
    puts ends || place > last.to_i ? "unfinished" : "invalid"
  end
end
