<?php
// Whether PHP itself reads functions: one in Base64 on each line in, `error` out if it does not.
while (($line = fgets(STDIN)) !== false) {
    $error = "error\n";
    foreach ([['<?php class A {', "\n}"], ['<?php ', '']] as [$before, $after]) {
        try {
            ast\parse_code($before . base64_decode($line) . $after, 90);
            $error = '';
        } catch (ParseError) {
        }
    }
    echo $error, "end\n";
}
