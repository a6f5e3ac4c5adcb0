/** `bursar completion bash|zsh|fish`: scripts that complete commands, options and types, written from the table of commands. */
import { eventTypes } from '../records/events/catalogue.ts'
import { type Command, commands, type OptionName, options, shells } from './table.ts'

/** Options whose value is a file. */
const takesFile = Object.entries(options).flatMap(([name, option]) =>
  'value' in option && option.value === 'FILE' ? [name] : [],
)
/** Options whose value is neither a file nor a type. */
const takesText = Object.entries(options).flatMap(([name, option]) =>
  'value' in option && option.value !== 'FILE' && name !== 'types' ? [name] : [],
)
const types = [...eventTypes.keys()]
const rooms = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''))]

/** @throws Error naming the shells. */
export function completion([shell, ...rest]: readonly string[]): string {
  const known = shells.find((name) => name === shell)
  if (known === undefined || rest.length > 0) throw new Error(`Usage: bursar completion ${shells.join('|')}`)
  return { bash, zsh, fish }[known]()
}

interface Follower {
  readonly typed: string
  readonly words: readonly string[]
  /** Files may follow, and others after them. */
  readonly hasFiles: boolean
}

/** Words that can follow those that were typed, by what was typed. */
function followers(): readonly Follower[] {
  const names = new Set([...rooms, ...commands.map(({ name }) => name)])
  return [
    { typed: '', words: [...rooms, '--help', '--version'], hasFiles: false },
    ...[...names].map((typed) => {
      const command = commands.find(({ name }) => name === typed)
      const below = commands.flatMap(({ name }) =>
        name.startsWith(`${typed} `) ? [name.slice(typed.length + 1)] : [],
      )
      const own = command === undefined ? [] : [...listWords(command), ...listOptions(command)]
      return { typed, words: [...below, ...own], hasFiles: command !== undefined && hasFiles(command) }
    }),
  ]
}

/** Tells whether a command takes files or directories as arguments. */
function hasFiles({ parameters = '' }: Command): boolean {
  return /FILE|DIRECTORY/.test(parameters)
}

function listWords({ words = [] }: Command): readonly string[] {
  return words === 'events' ? types : words
}

function listNames({ required = [], optional = [] }: Command): readonly OptionName[] {
  return [...required, ...optional, 'help']
}

function listOptions(command: Command): readonly string[] {
  return listNames(command).map((name) => `--${name}`)
}

const flags = (names: readonly string[]) => names.map((name) => `--${name}`).join('|')

/** The words before the cursor that are neither options nor their values decide what comes next, in bash and in zsh. */
const typedWords = (words: string) => `  local word skip='' typed=''
  for word in "\${${words}}"; do
    if [[ -n $skip ]]; then skip=''; continue; fi
    case $word in
      ${flags([...takesFile, ...takesText, 'types'])}) skip=1 ;;
      -*|:|//*) ;;
      *) typed="\${typed:+$typed }$word" ;;
    esac
  done`

const cases = (indent: string, files: string, command: (words: readonly string[]) => string) =>
  followers()
    .map(({ typed, words, hasFiles }) =>
      hasFiles
        ? `${indent}'${typed}'|'${typed} '*) ${command(words)}; ${files} ;;`
        : `${indent}'${typed}') ${command(words)} ;;`,
    )
    .join('\n')

function bash(): string {
  return `# Completion of bursar for bash: eval "$(bursar completion bash)"
_bursar() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} words='' files=''
  COMPREPLY=()
  case $prev in
    ${flags(takesFile)}) _bursar_files; return ;;
    --types)
      local before=''
      [[ $cur == *,* ]] && before=\${cur%,*},
      COMPREPLY=($(compgen -P "$before" -W '${types.join(' ')}' -- "\${cur##*,}"))
      return ;;
    ${flags(takesText)}) return ;;
  esac
${typedWords('COMP_WORDS[@]:1:COMP_CWORD-1')}
  case $typed in
${cases('    ', 'files=1', (words) => `words='${words.join(' ')}'`)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ -n $files && $cur != -* ]]; then _bursar_files; fi
}
# Names of files may have blanks.
_bursar_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY+=($(compgen -f -- "$cur"))
}
complete -F _bursar bursar
`
}

function zsh(): string {
  return `#compdef bursar
# Completion of bursar for zsh: eval "$(bursar completion zsh)", after compinit
_bursar() {
  local prev=\${words[CURRENT-1]}
  case $prev in
    ${flags(takesFile)}) _files; return ;;
    --types) compset -P '*,'; compadd -- ${types.join(' ')}; return ;;
    ${flags(takesText)}) return ;;
  esac
${typedWords('(@)words[2,CURRENT-1]')}
  case $typed in
${cases('    ', '_files', (words) => `compadd -- ${words.join(' ')}`)}
  esac
}
compdef _bursar bursar
`
}

function fish(): string {
  const quote = (text: string) => `'${text.replaceAll(/['\\]/g, (character) => `\\${character}`)}'`
  const first = commands.filter(
    ({ name }, index) =>
      !commands.slice(0, index).some((other) => extractRoom(other) === extractRoom({ name })),
  )
  const lines = [
    ...first.map((command) => {
      const [room = '', action] = command.name.split(' ')
      const about = action === undefined ? command.about : `commands of ${room}`
      return `complete -c bursar -n __fish_use_subcommand -a ${room} -d ${quote(about)}`
    }),
    ...commands.flatMap((command) => {
      const [room = '', action] = command.name.split(' ')
      const inRoom = `__fish_seen_subcommand_from ${room}`
      const isTyped = action === undefined ? inRoom : `${inRoom}; and __fish_seen_subcommand_from ${action}`
      const siblings = commands.flatMap(({ name }) =>
        extractRoom({ name }) === room ? [name.split(' ')[1] ?? ''] : [],
      )
      return [
        ...(action === undefined
          ? []
          : [
              `complete -c bursar -n ${quote(`${inRoom}; and not __fish_seen_subcommand_from ${siblings.join(' ')}`)} -a ${action} -d ${quote(command.about)}`,
            ]),
        ...(listWords(command).length === 0
          ? []
          : [
              `complete -c bursar -n ${quote(`${inRoom}; and not __fish_seen_subcommand_from ${listWords(command).join(' ')}`)} -a ${quote(listWords(command).join(' '))}`,
            ]),
        ...(hasFiles(command) ? [`complete -c bursar -n ${quote(isTyped)} -F`] : []),
        ...listNames(command).map((name) => {
          const value = takesFile.includes(name) ? ' -r -F' : options[name].type === 'boolean' ? '' : ' -x'
          const words = name === 'types' ? ` -a ${quote(`(__fish_append , ${types.join(' ')})`)}` : ''
          return `complete -c bursar -n ${quote(isTyped)} -l ${name}${value}${words} -d ${quote(options[name].about)}`
        }),
      ]
    }),
  ]
  return `# Completion of bursar for fish: bursar completion fish | source
complete -c bursar -f
${lines.join('\n')}
`
}

function extractRoom({ name }: Pick<Command, 'name'>): string {
  return name.split(' ')[0] ?? ''
}
