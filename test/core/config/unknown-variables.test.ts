import { describe, expect, it } from 'vitest'
import { unknownVariables } from '../../../src/core/config/read-config.ts'

const found = (...names: string[]) =>
  unknownVariables(Object.fromEntries(names.map((name) => [name, 'x']))).map(
    ({ name, nearest }) => `${name} → ${nearest}`,
  )

describe('settings that are no settings', () => {
  it('are found by a near miss, with the one that is probably meant', () => {
    expect(found('DATABASE_URI', 'REDIS_URI', 'LOGLEVEL', 'PUBLIC_ORIGINS', 'SESION_SECRET')).toEqual([
      'DATABASE_URI → DATABASE_URL',
      'LOGLEVEL → LOG_LEVEL',
      'PUBLIC_ORIGINS → PUBLIC_ORIGIN',
      'REDIS_URI → REDIS_URL',
      'SESION_SECRET → SESSION_SECRET',
    ])
  })

  it('are found by a beginning that only ours have', () => {
    expect(found('LITHIC_KEY', 'SMTP_PASSWORD', 'CHAIN_RPC_URL_BAES')).toEqual([
      'CHAIN_RPC_URL_BAES → CHAIN_RPC_URL_BASE',
      'LITHIC_KEY → LITHIC_API_KEY',
      'SMTP_PASSWORD → null',
    ])
  })

  it('are not the variables of the machine and of other programs', () => {
    const others = `PATH HOME USER LOGNAME SHELL LANG TERM PWD HOSTNAME NODE_ENV NODE_OPTIONS NO_COLOR HTTP_PROXY HTTPS_PROXY
      SESSION_MANAGER XDG_CONFIG_HOME REDIS_PORT REDIS_PORT_6379_TCP BRIDGE_SERVICE_HOST BURSAR_SERVICE_PORT POSTGRES_PASSWORD
      SSH_AUTH_SOCK MAIL EDITOR DISPLAY OTEL_SERVICE_NAME PGHOST KUBERNETES_SERVICE_HOST npm_config_registry`
    expect(found(...others.split(/\s+/))).toEqual([])
  })

  it('are not settings, files of secrets, limits, and variables of the command line', () => {
    expect(
      found('PORT', 'DATA_KEY_FILE', 'RATE_FX', 'OIDC_GOOGLE_CLIENT_ID', 'BURSAR_URL', 'LIFI_API_KEY_FILE'),
    ).toEqual([])
  })
})
