#!/usr/bin/env node
/**
 * The command line, which joins everything: config → runtime → tools → http, /mcp and jobs. The only src file that
 * imports tools/ or mcp/. Each command loads only the modules it needs, so that `bursar mcp` starts fast.
 */
import { parseArgs } from 'node:util'
import { VERSION } from './base/version.ts'

const help = `Bursar: the gateway that lets AI agents spend money, under a policy that holds.

Usage: bursar <command> [options]

  serve                                    start the gateway (sandbox mode by default)
  mcp --url URL --key FILE                 MCP server on standard input and output, for a local agent  [--toolsets ROOMS]
  agent new --name NAME --out FILE         create an agent's key pair; prints the public part
  agent register --url URL --name NAME --out FILE   ask an owner to register a new key, and wait for the decision
  agent sign --key FILE METHOD PATH        print the headers that sign a request  [--url URL] [--data JSON]
  agent call --key FILE METHOD PATH        sign a request and send it             [--url URL] [--data JSON]
  migrate                                  apply missing migrations to DATABASE_URL or DATA_DIR
  audit verify                             verify decisions and journal  [--from-export FILE] [--jwks FILE] [--journal-head HASH]
  audit export --out FILE                  write the chain as JSON Lines, for external storage
  admin grant ACCOUNT                      make a sandbox account an administrator
  doctor                                   check everything that the gateway needs, with remedies  [--json]
  help, version                            print this text, or the version

The configuration comes from environment variables (PORT, MODE, DATABASE_URL, …): see docs/configuration.md.
`

const options = {
  url: { type: 'string' },
  key: { type: 'string' },
  name: { type: 'string' },
  out: { type: 'string' },
  data: { type: 'string' },
  jwks: { type: 'string' },
  'from-export': { type: 'string' },
  'journal-head': { type: 'string' },
  'idempotency-key': { type: 'string' },
  toolsets: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const

/** @returns the exit code. @throws Error with a user-facing message. */
async function main(argv: readonly string[]): Promise<number> {
  // Files created by commands may hold secrets or personal data, so only their user may read them.
  process.umask(0o077)
  const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true })
  const [command = 'help', ...rest] = positionals
  if (values.version === true || command === 'version') return print(`${VERSION}\n`)
  if (values.help === true || command === 'help') return print(help)
  switch (command) {
    case 'serve':
      return exit(await serve())
    case 'migrate':
      return (await import('./commands/migrate.ts')).migrate(process.env)
    case 'doctor': {
      const code = await (await import('./commands/doctor.ts')).doctor(
        process.env,
        {
          isJson: values.json === true,
          isColoured: process.stdout.isTTY && process.env.NO_COLOR === undefined,
        },
        print,
      )
      return exit(code)
    }
    case 'admin':
      return (await import('./commands/admin.ts')).admin(rest, process.env)
    case 'audit':
      return (await import('./commands/audit.ts')).audit(rest, values, process.env)
    case 'agent':
      return (await import('./commands/agent.ts')).agent(rest, values)
    case 'mcp': {
      const [{ readKeyFile }, { urlOf }, { serveStdio }] = await Promise.all([
        import('./commands/key-file.ts'),
        import('./commands/url-of.ts'),
        import('../mcp/stdio.ts'),
      ])
      await serveStdio({
        url: urlOf(required(values.url, '--url')).origin,
        key: readKeyFile(required(values.key, '--key')),
        toolsets: values.toolsets ?? null,
      })
      return 0
    }
    default:
      process.stderr.write(`bursar: unknown command "${command}". Try "bursar help".\n`)
      return 2
  }
}

async function serve(): Promise<number> {
  const [{ serve }, { tools }, { mcpHandler }] = await Promise.all([
    import('./commands/serve.ts'),
    import('../tools/index.ts'),
    import('../mcp/http.ts'),
  ])
  return serve(process.env, { tools, mcpHandler })
}

/** Exits once all output is written: a dependency that did not close in time would keep the process alive. */
function exit(code: number): Promise<never> {
  return new Promise(() => process.stdout.write('', () => process.exit(code)))
}

function print(text: string): number {
  process.stdout.write(text)
  return 0
}

function required(value: string | undefined, option: string): string {
  if (value === undefined) throw new Error(`${option} is missing. Try "bursar help".`)
  return value
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    // Dependencies started before the failure (a chain, a database) must not keep the process alive.
    process.stderr.write(`bursar: ${error instanceof Error ? error.message : String(error)}\n`, () =>
      process.exit(1),
    )
  },
)
