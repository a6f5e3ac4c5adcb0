/** Secrets from files, as orchestrators mount them: `SESSION_SECRET_FILE` names the file that holds `SESSION_SECRET`. */
import { readFileSync } from 'node:fs'

const SUFFIX = '_FILE'

/** The variables that hold secrets, or a URL with a password in it. */
const secrets: ReadonlySet<string> = new Set([
  'ALPACA_API_KEY',
  'ALPACA_API_SECRET',
  'BRIDGE_API_KEY',
  'BRIDGE_WEBHOOK_PUBLIC_KEY',
  'CHAIN_OWNER_KEY',
  'CHAIN_RPC_URL',
  'CHAIN_SPONSOR_KEY',
  'DATABASE_URL',
  'DATA_KEY',
  'LITHIC_API_KEY',
  'LITHIC_WEBHOOK_SECRET',
  'LITHIC_WEBHOOK_SECRET_PREVIOUS',
  'METRICS_TOKEN',
  'REDIS_URL',
  'SCREENING_API_KEY',
  'SESSION_SECRET',
  'SMTP_URL',
  'SUMSUB_APP_TOKEN',
  'SUMSUB_SECRET_KEY',
  'SUMSUB_WEBHOOK_SECRET',
  'TRAVEL_RULE_API_KEY',
  'TWILIO_AUTH_TOKEN',
])

/** The secrets whose files the environment names, and what is wrong with the others. A file's last line end does not count. */
export function secretsFromFiles(given: Readonly<Record<string, string | undefined>>): {
  readonly read: Readonly<Record<string, string>>
  readonly complaints: readonly string[]
} {
  const read: Record<string, string> = {}
  const complaints: string[] = []
  for (const [variable, path = ''] of Object.entries(given)) {
    const name = variable.slice(0, -SUFFIX.length)
    const isSecret = secrets.has(name) || /^OIDC_\w+_CLIENT_SECRET$/.test(name) || /^\w+_API_KEY$/.test(name)
    if (!variable.endsWith(SUFFIX) || !isSecret) continue
    try {
      if (given[name] !== undefined) throw new Error(`${name} is set as well; one of them must go`)
      read[name] = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
    } catch (error) {
      // The system's own words name the path and the reason, and never what a file holds.
      complaints.push(`${variable}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return { read, complaints }
}
