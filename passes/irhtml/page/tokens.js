// Rows as tokens, for colors and clicks.

const IR_TOKENS = new RegExp([
  '(?<string>"(?:[^"\\\\]|\\\\.)*"?)',
  '(?<value>%[\\w$.-]+(?:[#:]\\d+)?)',
  '(?<symbol>@(?:[\\w$.]+|"(?:[^"\\\\]|\\\\.)*")(?:::@(?:[\\w$.]+|"(?:[^"\\\\]|\\\\.)*"))*)',
  '(?<label>\\^\\w+)',
  '(?<type>(?:![\\w.$]+|tensor|memref|vector|complex|tuple)<(?:[^<>"]|<[^<>"]*>)*>|\\b(?:[su]?i\\d+|b?f\\d+|index)\\b(?!\\s*=))',
  '(?<name>[A-Za-z_][\\w$]*(?:\\.[\\w$]+)*)',
  '(?<number>-?\\d[\\w.]*(?:(?<=e)[+-]\\d+)?)',
].join('|'), 'g');

const MODEL_TOKENS = new RegExp([
  '(?<comment>//.*)',
  '(?<string>"(?:[^"\\\\]|\\\\.)*"?)',
  '(?<keyword>\\b(?:model|module|train|param|layers|fn|let|return|for|in|where|if|else|minimize|batch|optimizer|clip)\\b)',
  '(?<type>\\b(?:[su]?i\\d+|b?f\\d+)\\b)',
  '(?<name>[A-Za-z_]\\w*)',
  '(?<number>\\b\\d[\\w.]*(?:(?<=e)[+-]\\d+)?)',
].join('|'), 'g');

// tokenize lists the tokens of a row: {kind, from, to}, and for a value its number and whether it is defined here.
// What is between tokens is plain text. Values have numbers only where their names were told apart by the compiler.
function tokenize(text, numbers, isModel) {
  const tokens = [];
  let opSeen = text.charCodeAt(0) === 9, value = 0;
  for (const m of text.matchAll(isModel ? MODEL_TOKENS : IR_TOKENS)) {
    let kind = Object.keys(m.groups).find((k) => m.groups[k] !== undefined);
    const from = m.index, to = from + m[0].length;
    const token = { kind, from, to };
    if (kind === 'value' && numbers.length) {
      token.number = numbers[value++];
      token.defines = /^(?: =|: )/.test(text.slice(to, to + 2));
      token.count = token.defines ? Number((/:(\d+)$/.exec(m[0]) || [0, 1])[1]) : 1;
    } else if (!isModel && !opSeen && (kind === 'name' || kind === 'string')) {
      token.kind = 'op';
      opSeen = true;
    } else if (!isModel && kind === 'name') {
      token.kind = /^ =/.test(text.slice(to, to + 2)) ? 'attr' : 'word';
    }
    tokens.push(token);
  }
  return tokens;
}

// opName is the operation that a line is of, or ''.
function opName(text) {
  const m = /^ *(?:%[\w:]+ = )?"?([A-Za-z_][\w$.]*)/.exec(text);
  return m ? m[1] : '';
}

// symbolPath reads a reference such as @a::@"b c": ['a', 'b c'].
function symbolPath(text) {
  return Array.from(text.matchAll(/@([\w$.]+|"(?:[^"\\]|\\.)*")/g), ([, name]) => name[0] === '"' ? unquote(name.slice(1, -1)) : name);
}

// unquote undoes the escapes of the printer: \" and \\, and \xx for bytes of UTF-8.
function unquote(text) {
  const bytes = [];
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== '\\') bytes.push(text.charCodeAt(i));
    else if (text[i + 1] === '"' || text[i + 1] === '\\') bytes.push(text.charCodeAt(++i));
    else { bytes.push(parseInt(text.substr(i + 1, 2), 16)); i += 2; }
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}
