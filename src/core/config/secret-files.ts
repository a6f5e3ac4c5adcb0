/** Reads secrets from files that orchestrators mount: `SESSION_SECRET_FILE` names the file with `SESSION_SECRET`. */
import { readFileSync } from 'node:fs'
import { rpcVariables } from './chains.ts'

const SUFFIX = '_FILE'

/** Variables that hold a secret, or a URL that may contain a password. */
const secrets: ReadonlySet<string> = new Set([
  'ACCESS_TOKEN_KEY',
  'ACCESS_TOKEN_KEY_PREVIOUS',
  'ALPACA_API_KEY',
  'ALPACA_API_SECRET',
  'AWS_KMS_ACCESS_KEY_ID',
  'AWS_KMS_SECRET_ACCESS_KEY',
  'AWS_KMS_SESSION_TOKEN',
  'BRIDGE_API_KEY',
  'BRIDGE_WEBHOOK_PUBLIC_KEY',
  'CDP_API_KEY_SECRET',
  'CHAIN_OWNER_KEY',
  'CHAIN_OWNER_KEY_PREVIOUS',
  'CHAIN_RPC_URL',
  'CHAIN_SPONSOR_KEY',
  'DATABASE_POOLER_URL',
  'DATABASE_URL',
  'DATA_KEY',
  'DATA_KEY_PREVIOUS',
  'GCP_KMS_CREDENTIALS',
  'LITHIC_API_KEY',
  'LITHIC_EVENTS_SECRET',
  'LITHIC_WEBHOOK_SECRET',
  'LITHIC_WEBHOOK_SECRET_PREVIOUS',
  'METRICS_TOKEN',
  'PKCS11_PIN',
  'PUSH_KEY',
  'PUSH_KEY_PREVIOUS',
  'RECEIPT_KEY',
  'REDIS_URL',
  'SCREENING_API_KEY',
  'SESSION_SECRET',
  'SESSION_SECRET_PREVIOUS',
  'SMTP_URL',
  'SUMSUB_APP_TOKEN',
  'SUMSUB_SECRET_KEY',
  'SUMSUB_WEBHOOK_SECRET',
  'TRAVEL_RULE_API_KEY',
  'TWILIO_AUTH_TOKEN',
  'WEB_BOT_AUTH_KEY',
  'WEB_BOT_AUTH_KEY_PREVIOUS',
])

/** True for a variable that names the file of a secret. */
export function isSecretFile(variable: string): boolean {
  const name = variable.slice(0, -SUFFIX.length)
  const isSecret =
    secrets.has(name) ||
    /^OIDC_\w+_CLIENT_SECRET$/.test(name) ||
    /^\w+_API_KEY$/.test(name) ||
    rpcVariables.includes(name)
  return variable.endsWith(SUFFIX) && isSecret
}

/** Returns the secrets read from files, and one complaint per unreadable file. A trailing line break is removed. */
export function secretsFromFiles(given: Readonly<Record<string, string | undefined>>): {
  readonly read: Readonly<Record<string, string>>
  readonly complaints: readonly string[]
} {
  const read: Record<string, string> = {}
  const complaints: string[] = []
  for (const [variable, path = ''] of Object.entries(given)) {
    if (!isSecretFile(variable)) continue
    const name = variable.slice(0, -SUFFIX.length)
    try {
      if (given[name] !== undefined) throw new Error(`${name} is set too; remove one of them`)
      read[name] = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
    } catch (error) {
      // System errors name the path and the reason, never the file's content.
      complaints.push(`${variable}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return { read, complaints }
}
