<?php
// What PHP says about texts; `__init__.py` says what is read and written. A text that PHP can parse, but not compile, ends
// this program.
error_reporting(0);
ini_set('display_errors', '0');
$within = false;
register_shutdown_function(function () use (&$within) {
    if ($within) {
        echo "invalid\n";
    }
});
while (($line = fgets(STDIN)) !== false) {
    [$last, $text] = explode(' ', trim($line));
    $text = base64_decode($text);
    try {
        token_get_all("<?php $text", TOKEN_PARSE);
    } catch (ParseError $error) {
        $ends = str_contains($error->getMessage(), 'end of file');
        echo $ends || $error->getLine() > (int) $last ? "unfinished\n" : "invalid\n";
        continue;
    }
    if (preg_match('/\?>|__halt_compiler/i', $text)) {
        echo "unknown\n";  // it might end what keeps it from being run
        continue;
    }
    $within = true;
    eval("return;\nif (0) {\n$text\n}");  // compiled, not run: it has the form of whole statements
    $within = false;
    echo "valid\n";
}
