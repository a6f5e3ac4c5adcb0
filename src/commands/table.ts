/**
 * The commands and their options, as they are parsed, explained and completed. Help texts and the scripts of the shells are
 * written from this table.
 */

interface Option {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  /** May be given several times. */
  readonly multiple?: boolean
  /** Placeholder of the value; absent for a boolean. */
  readonly value?: string
  readonly about: string
}

export const options = {
  url: { type: 'string', value: 'URL', about: 'gateway; BURSAR_URL or the local sandbox unless given' },
  key: { type: 'string', value: 'FILE', about: 'key file of an agent' },
  name: { type: 'string', value: 'NAME', about: 'name of the agent' },
  out: { type: 'string', value: 'FILE', about: 'file or directory to write; never overwritten' },
  data: { type: 'string', value: 'JSON', about: 'body of the request, or terms of a delegation' },
  email: { type: 'string', value: 'ADDRESS', about: 'e-mail address that the person signs in with' },
  jwks: { type: 'string', value: 'FILE', about: 'public keys of the receipts' },
  'from-export': { type: 'string', value: 'FILE', about: 'verify an export instead of the database' },
  'journal-head': { type: 'string', value: 'HASH', about: 'head printed by an earlier verification' },
  rpc: { type: 'string', value: 'URL', about: 'node that confirms the payment' },
  'idempotency-key': { type: 'string', value: 'KEY', about: 'repeats with this key are one call' },
  toolsets: { type: 'string', value: 'ROOMS', about: 'tools to offer, such as wallets,cards' },
  'forward-to': { type: 'string', value: 'URL', about: 'send each event there as a signed webhook' },
  budget: { type: 'string', value: 'USD', about: 'the most that may be spent in all, such as 2.00' },
  'max-price': {
    type: 'string',
    value: 'USD',
    about: 'the most that one purchase may cost; 0.10 unless given',
  },
  port: { type: 'string', value: 'PORT', about: 'port on 127.0.0.1; 8402, or that of the last start' },
  ca: { type: 'string', value: 'FILE', about: 'PEM of certificate authorities to trust besides the usual' },
  pass: {
    type: 'string',
    multiple: true,
    value: 'HOST',
    about: 'host to leave alone; .HOST with all below it',
  },
  'allow-private': { type: 'boolean', about: 'let programs reach private addresses too' },
  'no-proxy': { type: 'boolean', about: 'start no proxy for the program' },
  for: { type: 'string', value: 'TIME', about: 'how long its key lives, such as 30m; 1h unless given' },
  format: {
    type: 'string',
    value: 'FORMAT',
    about: 'pdf, csv, ofx, camt, hledger or json; json unless given',
  },
  keep: { type: 'string', value: 'MONTHS', about: 'months that stay, with this one; 13 unless given' },
  'dry-run': { type: 'boolean', about: 'only say what would be done' },
  archives: { type: 'boolean', about: 'verify the archives in these directories too' },
  month: { type: 'string', value: 'MONTH', about: 'month in UTC, such as 2026-11' },
  with: {
    type: 'string',
    value: 'KEY',
    about: 'reference of a key outside, such as pkcs11:token=bursar;object=wrapping',
  },
  types: { type: 'string', value: 'T,…', about: 'types of events, such as transfer.confirmed' },
  json: { type: 'boolean', about: 'print JSON' },
  help: { type: 'boolean', short: 'h', about: 'explain the command' },
  version: { type: 'boolean', short: 'v', about: 'print the version' },
} as const satisfies Readonly<Record<string, Option>>

export type OptionName = keyof typeof options

export interface Command {
  /** One or two words. */
  readonly name: string
  /** Arguments after the name, such as `METHOD PATH`. */
  readonly parameters?: string
  readonly about: string
  readonly required?: readonly OptionName[]
  readonly optional?: readonly OptionName[]
  /** Words that the first argument can be; `events` are the types of the catalogue. */
  readonly words?: readonly string[] | 'events'
  /** Sentences after the usage. */
  readonly details?: string
  readonly examples?: readonly string[]
}

export const shells = ['bash', 'zsh', 'fish'] as const

export const statementFormats = ['pdf', 'csv', 'ofx', 'camt', 'hledger', 'json'] as const

const session =
  'Uses the session of "bursar login", or BURSAR_SESSION. BURSAR_URL names the gateway where --url does not.'

/** Variables whose secret `bursar keys wrap` encrypts. */
export const wrappableSecrets = [
  'DATA_KEY',
  'DATA_KEY_PREVIOUS',
  'SESSION_SECRET',
  'SESSION_SECRET_PREVIOUS',
  'RECEIPT_KEY',
  'ACCESS_TOKEN_KEY',
  'WEB_BOT_AUTH_KEY',
  'PUSH_KEY',
] as const

export const commands: readonly Command[] = [
  {
    name: 'serve',
    about: 'start the gateway (sandbox mode by default)',
    examples: ['PORT=8080 bursar serve'],
  },
  {
    name: 'mcp',
    about: 'MCP server on standard input and output, for a local agent',
    required: ['url', 'key'],
    optional: ['toolsets'],
    examples: ['bursar mcp --url http://127.0.0.1:8787 --key agent.json --toolsets context,wallets'],
  },
  {
    name: 'login',
    about: 'sign in on a page in the browser, and keep the session for other commands',
    optional: ['url'],
    details:
      'Prints a link and a code: open the link, compare the code, and allow. The session lasts up to 12 hours and is kept for this user only in ~/.config/bursar/sessions.json (XDG_CONFIG_HOME is honoured).',
    examples: ['bursar login', 'bursar login --url https://bursar.example'],
  },
  {
    name: 'logout',
    about: 'end the session of "bursar login" and forget it',
    optional: ['url'],
    examples: ['bursar logout'],
  },
  {
    name: 'listen',
    about: 'print events as they happen, and forward them to a local program',
    optional: ['forward-to', 'types', 'url', 'key', 'json'],
    details: `${session} --key takes an agent's own events instead (scope events:read). Forwarded events are signed as Standard Webhooks with a new secret, which is printed at the start, or with BURSAR_WEBHOOK_SECRET. Ctrl-C ends it.`,
    examples: [
      'bursar listen',
      'bursar listen --types transfer.confirmed,transfer.failed --json',
      'bursar listen --forward-to http://127.0.0.1:3000/webhooks',
    ],
  },
  {
    name: 'trigger',
    parameters: '[TYPE]',
    about: 'play what causes an event, in the sandbox; lists the types without one',
    optional: ['url'],
    words: 'events',
    details: `${session} The event is real: money of the sandbox moves, cards are issued.`,
    examples: ['bursar trigger', 'bursar trigger transfer.confirmed'],
  },
  {
    name: 'statement',
    parameters: 'PERIOD',
    about: 'write what came and left in a month, or from one day to another',
    optional: ['format', 'out', 'url'],
    details: `${session} The period is a month in UTC, such as 2026-11, or days, such as 2026-11-01..2026-11-15.`,
    examples: [
      'bursar statement 2026-11 --format pdf --out november.pdf',
      'bursar statement 2026-11 --format hledger | hledger -f - balance',
    ],
  },
  {
    name: 'agent new',
    about: "create an agent's key pair; prints the public part",
    required: ['name', 'out'],
    examples: ["bursar agent new --name 'Invoice bot' --out agent.json"],
  },
  {
    name: 'agent register',
    about: 'ask an owner to register a new key, and wait for the decision',
    required: ['name', 'out'],
    optional: ['url'],
    examples: ["bursar agent register --url http://127.0.0.1:8787 --name 'Invoice bot' --out agent.json"],
  },
  {
    name: 'agent delegate',
    about: "share an agent's budget with a new key, without asking the gateway",
    required: ['key', 'name', 'out', 'data'],
    optional: ['url'],
    details:
      '--data has scopes, policy, expiresAt (within 30 days), and perhaps earmark and task. The new key sends the delegation with its requests; the gateway learns of it with the first one.',
    examples: [
      'bursar agent delegate --key agent.json --name Helper --out helper.json --data \'{"scopes":["wallets:read"],"expiresAt":"2026-11-20T12:00:00Z"}\'',
    ],
  },
  {
    name: 'agent sign',
    parameters: 'METHOD PATH',
    about: 'print the headers that sign a request',
    required: ['key'],
    optional: ['url', 'data', 'idempotency-key'],
    examples: ['bursar agent sign --key agent.json GET /api/wallets'],
  },
  {
    name: 'agent call',
    parameters: 'METHOD PATH',
    about: 'sign a request and send it',
    required: ['key'],
    optional: ['url', 'data', 'idempotency-key'],
    examples: ['bursar agent call --key agent.json GET http://127.0.0.1:8787/api/wallets'],
  },
  {
    name: 'run',
    parameters: '-- COMMAND',
    about: 'run a program with a key that can spend so much and no more',
    required: ['key', 'budget'],
    optional: ['for', 'name', 'max-price', 'no-proxy', 'ca', 'pass', 'allow-private', 'url'],
    details:
      'Shares the budget of the key in --key, which needs the scope agents:delegate. The program finds BURSAR_URL and BURSAR_KEY_FILE, and a proxy that buys what answers 402 (see "bursar proxy --help"). At its end the key is revoked, and what was spent is printed. Exits with the program\'s code (128 + signal when it was killed), 64 for wrong arguments, 69 when the gateway cannot be reached, 77 when it refuses the budget.',
    examples: ['bursar run --key agent.json --budget 2.00 --for 30m -- python research.py'],
  },
  {
    name: 'proxy',
    about: 'forward proxy that buys what answers 402, for programs without a wallet',
    required: ['key'],
    optional: ['port', 'max-price', 'budget', 'ca', 'pass', 'allow-private', 'url'],
    details:
      'Listens on 127.0.0.1 for programs that have its token. What asks for a payment by x402 or MPP is bought through the gateway within the policy of the key, and its answer is given; everything else passes unread. --budget is what may be spent with this key in all, 1.00 unless given. The gateway is --url, BURSAR_URL, or that of the key file.',
    examples: [
      'bursar proxy --key agent.json --budget 5.00',
      'eval "$(bursar proxy env)" && curl https://seller.example/report',
    ],
  },
  {
    name: 'proxy env',
    about: 'print the variables by which programs use the proxy, for a shell to evaluate',
    optional: ['port', 'ca', 'url'],
    details: 'HTTPS is read with a certificate authority of its own, which only these programs trust.',
    examples: ['eval "$(bursar proxy env)"'],
  },
  { name: 'migrate', about: 'apply missing migrations to DATABASE_URL or DATA_DIR' },
  {
    name: 'audit verify',
    parameters: '[DIRECTORY…]',
    about: 'verify decisions and journal',
    optional: ['from-export', 'jwks', 'journal-head', 'archives'],
    details:
      'Where months were archived it begins at their end, and says so; with --archives and the directories of all of them it verifies those first.',
    examples: [
      'bursar audit verify --from-export decisions.jsonl --jwks jwks.json',
      'bursar audit verify --archives archives/*',
    ],
  },
  {
    name: 'audit verify-purchase',
    parameters: 'FILE',
    about: 'verify the evidence of a purchase',
    optional: ['jwks', 'rpc'],
  },
  {
    name: 'audit export',
    about: 'write the chain as JSON Lines, for external storage',
    required: ['out'],
    optional: ['jwks'],
  },
  {
    name: 'export',
    about: 'write the books of a month, for anybody to recompute',
    required: ['month', 'out'],
    details:
      'Reads DATABASE_URL or DATA_DIR and writes into an empty directory: decisions with receipts, what became of each spend, budgets, postings, balances, evidence on chain, and a signed manifest. Instead of a month, days: 2026-11-01..2026-11-15. docs/verify/ has the format and a verifier in Python.',
    examples: ['bursar export --month 2026-11 --out books-2026-11'],
  },
  {
    name: 'archive',
    about: 'write the books of an old month, then take its decisions out of the database',
    required: ['month', 'out'],
    optional: ['keep', 'dry-run'],
    details:
      'Writes the files of bursar export with gzip, reads them back and verifies them, and only then lets the month go: the oldest first, and none of the last 13 unless --keep says otherwise. The gateway goes on; with DATA_DIR, stop it first. Ended at any moment, the same command goes on where it was. Payments, balances and budgets stay.',
    examples: [
      'bursar archive --month 2025-10 --out archives/2025-10 --dry-run',
      'bursar archive --month 2025-10 --out archives/2025-10',
    ],
  },
  {
    name: 'chain check',
    parameters: '[CHAIN]',
    about: 'compare every contract that money depends on with what is expected',
    optional: ['json'],
    details:
      'Reads the node only. The exit code is 1 if one is missing or different. Where CHAINS names several chains, name one.',
    examples: ['CHAINS=base CHAIN_RPC_URL_BASE=https://node.example bursar chain check'],
  },
  {
    name: 'chain deploy',
    parameters: '[CHAIN]',
    about: 'deploy our own contracts where they are missing, paid by the sponsor',
    optional: ['json'],
    details:
      'Their code determines their address, which is the same on every chain. Repeating it changes nothing.',
  },
  {
    name: 'admin grant',
    parameters: '[ACCOUNT]',
    about: 'make a person the administrator, by account or by e-mail address',
    optional: ['email'],
    details:
      'The person must have signed in once. Production has one administrator, the sandbox any number. It applies from the next request, without a restart.',
    examples: ['bursar admin grant --email ada@example.com'],
  },
  {
    name: 'admin revoke',
    parameters: '[ACCOUNT]',
    about: 'end what "admin grant" began',
    optional: ['email'],
    examples: ['bursar admin revoke --email ada@example.com'],
  },
  { name: 'admin list', about: 'print the administrators' },
  {
    name: 'backup',
    about: 'save the whole database in one file',
    required: ['out'],
    details:
      'PostgreSQL by its pg_dump, while gateways run; the embedded database while none runs. The secrets are not in it.',
    examples: ['bursar backup --out bursar.backup'],
  },
  {
    name: 'restore',
    parameters: 'FILE',
    about: 'restore a backup into an empty database or a new DATA_DIR',
    examples: ['bursar restore bursar.backup'],
  },
  {
    name: 'keys rotate',
    about: 'seal everything anew under DATA_KEY that DATA_KEY_PREVIOUS had sealed',
    details:
      'Gateways that have both keys keep serving. It may be interrupted and repeated: what is sealed under DATA_KEY stays. docs/operations.md has the steps.',
    examples: ['DATA_KEY_FILE=new.key DATA_KEY_PREVIOUS_FILE=old.key bursar keys rotate'],
  },
  {
    name: 'keys wrap',
    parameters: 'VARIABLE',
    about: 'encrypt a secret by a key in a token or a cloud; prints the new value of its variable',
    required: ['with'],
    words: wrappableSecrets,
    details:
      'The gateway opens it at its start. A value that another key has wrapped is opened first, so that the wrapping key can be replaced.',
    examples: [
      "DATA_KEY_FILE=data.key bursar keys wrap DATA_KEY --with 'pkcs11:token=bursar;object=wrapping'",
    ],
  },
  {
    name: 'doctor',
    about: 'check everything that the gateway needs, with remedies',
    optional: ['json'],
  },
  {
    name: 'completion',
    parameters: shells.join('|'),
    about: 'print the completion script of a shell',
    words: shells,
    examples: [
      'eval "$(bursar completion bash)"     # in ~/.bashrc',
      'eval "$(bursar completion zsh)"      # in ~/.zshrc, after compinit',
      'bursar completion fish | source      # in ~/.config/fish/config.fish',
    ],
  },
  { name: 'help', about: 'print this text' },
  { name: 'version', about: 'print the version' },
]

/** Option as it is typed, such as `--url URL`. */
export function writtenOption(name: OptionName): string {
  const option: Option = options[name]
  return `--${name}${option.value === undefined ? '' : ` ${option.value}`}`
}
