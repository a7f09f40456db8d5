import { Argument, type Command, type Option } from 'commander';

/** What may follow the words of one command. */
interface Words {
  /** `key create`; the program itself: empty. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly {
    readonly flag: string;
    readonly description: string;
    readonly choices: readonly string[];
  }[];
}

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** Adds `doorplate completion SHELL`, which prints a script that completes commands, options and their choices. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .action((shell: Shell) => {
      process.stdout.write(SCRIPTS[shell](wordsOf(program, '')));
    });
}

function wordsOf(command: Command, path: string): Words[] {
  const visible = command.createHelp();
  const commands = visible.visibleCommands(command).map((one) => ({
    name: one.name(),
    description: one.description(),
  }));
  const options = visible.visibleOptions(command).map((option: Option) => ({
    flag: option.long ?? option.short ?? '',
    description: option.description,
    choices: option.argChoices ?? [],
  }));
  const below = command.commands.flatMap((one) => wordsOf(one, `${path} ${one.name()}`.trim()));
  const named = command.registeredArguments.flatMap(({ argChoices = [] }) =>
    argChoices.map((name) => ({ name, description: '' })),
  );
  return [{ path, commands: [...commands, ...named], options }, ...below];
}

/** All that may follow a command, in one line of shell words; names hold letters, digits and hyphens alone. */
const following = ({ commands, options }: Words): string =>
  [...commands.map(({ name }) => name), ...options.map(({ flag }) => flag)].join(' ');

const choicesOf = (words: readonly Words[]) =>
  words.flatMap(({ path, options }) =>
    options.flatMap(({ flag, choices }) => (choices.length === 0 ? [] : [{ path, flag, choices }])),
  );

/** The command's path is the longest run of words that is one. Other values, such as files, are the shell's to complete. */
const bash = (words: readonly Words[]): string => `# bash completion of doorplate
_doorplate() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} path='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
${words
  .filter(({ path }) => path !== '')
  .map(({ path }) => `      '${path.includes(' ') ? path : ` ${path}`}') path='${path}' ;;`)
  .join('\n')}
    esac
  done
  case "$path $previous" in
${choicesOf(words)
  .map(
    ({ path, flag, choices }) =>
      `    '${path} ${flag}') COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$current")); return ;;`,
  )
  .join('\n')}
  esac
  case "$path" in
${words.map((one) => `    '${one.path}') COMPREPLY=($(compgen -W '${following(one)}' -- "$current")) ;;`).join('\n')}
  esac
}
complete -o default -F _doorplate doorplate
`;

/** zsh runs bash's completions. */
const zsh = (words: readonly Words[]): string => `#compdef doorplate
autoload -U +X bashcompinit && bashcompinit
${bash(words)}`;

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

const fish = (words: readonly Words[]): string => {
  const lines = words.flatMap(({ path, commands, options }) => {
    const [parent, child] = path.split(' ');
    const names = commands.map(({ name }) => name).join(' ');
    const here =
      path === ''
        ? '__fish_use_subcommand'
        : [parent, child]
            .filter((word) => word !== undefined)
            .map((word) => `__fish_seen_subcommand_from ${word}`)
            .join('; and ');
    const whenCommands =
      path === '' || names === '' ? here : `${here}; and not __fish_seen_subcommand_from ${names}`;
    return [
      ...commands.map(
        ({ name, description }) =>
          `complete -c doorplate -f -n ${quoted(whenCommands)} -a ${name} -d ${quoted(description)}`,
      ),
      ...options.map(
        ({ flag, description, choices }) =>
          `complete -c doorplate -n ${quoted(whenCommands)} -l ${flag.replace(/^--/, '')} -d ${quoted(description)}${
            choices.length === 0 ? '' : ` -x -a ${quoted(choices.join(' '))}`
          }`,
      ),
    ];
  });
  return `# fish completion of doorplate\n${lines.join('\n')}\n`;
};

const SCRIPTS: Readonly<Record<Shell, (words: readonly Words[]) => string>> = { bash, zsh, fish };
