import com.sun.source.util.JavacTask;
import java.io.*;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.*;
import javax.tools.*;

/** What the JDK's compiler says about texts; `__init__.py` says what is read and written. */
class Check {
  static final Set<String> PLACES =
      Set.of("compiler.err.break.outside.switch.loop", "compiler.err.cont.outside.loop", "compiler.err.undef.label");

  public static void main(String[] arguments) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in));
    var compiler = ToolProvider.getSystemJavaCompiler();
    for (String line; (line = lines.readLine()) != null; System.out.flush()) {
      String[] parts = line.split(" ");
      String text = new String(Base64.getDecoder().decode(parts[1]), StandardCharsets.UTF_8);
      var file = new SimpleJavaFileObject(URI.create("string:///A.java"), JavaFileObject.Kind.SOURCE) {
        public CharSequence getCharContent(boolean ignored) { return text; }
      };
      var errors = new DiagnosticCollector<JavaFileObject>();
      var task = (JavacTask) compiler.getTask(new StringWriter(), null, errors, List.of("-proc:none"), null, List.of(file));
      task.parse();
      String verdict = "valid";
      for (var one : errors.getDiagnostics()) {
        if (one.getKind() != Diagnostic.Kind.ERROR) continue;
        boolean beyond = one.getLineNumber() > Integer.parseInt(parts[0]);
        verdict = beyond || one.getCode().equals("compiler.err.premature.eof") ? "unfinished" : "invalid";
        break;
      }
      if (verdict.equals("valid") && (text.contains("break") || text.contains("continue"))) {
        try { task.analyze(); } catch (RuntimeException | Error ignored) { }
        if (errors.getDiagnostics().stream().anyMatch(one -> PLACES.contains(one.getCode()))) verdict = "invalid";
      }
      System.out.println(verdict);
    }
  }
}
