import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/core/config/read-config.ts'

const production = {
  MODE: 'production',
  PUBLIC_ORIGIN: 'https://bursar.example',
  DATABASE_URL: 'postgres://bursar@db.example/bursar',
  CHAIN_RPC_URL_BASE_SEPOLIA: 'https://rpc.example',
  CHAIN_SPONSOR_KEY: `0x${'1'.repeat(64)}`,
  CHAIN_OWNER_KEY: `0x${'2'.repeat(64)}`,
  X402_PAY_TO: `0x${'2'.repeat(40)}`,
  SESSION_SECRET: 's'.repeat(32),
  DATA_KEY: 'd'.repeat(32),
  LITHIC_WEBHOOK_SECRET: `whsec_${'c'.repeat(32)}`,
  BRIDGE_WEBHOOK_PUBLIC_KEY: String(
    generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'pem', type: 'spki' }),
  ),
}

/** Lines of a configuration error below its heading. */
function listErrors(env: Record<string, string | undefined>): string[] {
  try {
    readConfig(env)
  } catch (error) {
    const [heading, ...lines] = String(error instanceof Error ? error.message : error).split('\n')
    expect(heading).toBe('The configuration is not valid:')
    return lines.map((line) => line.trim())
  }
  return []
}

describe('the configuration', () => {
  it('reads the screening provider, the sanctions list and our own identity', () => {
    const lei = '5493001KJTIIGC8Y1R12'
    const { screening, sanctionsList, aml, vasp } = readConfig({
      SCREENING_API_KEY: 'key',
      SANCTIONS_LIST: '/etc/list.json',
      AML_VELOCITY: '1/1',
      VASP_NAME: 'Example Bank',
      VASP_LEI: lei,
    })
    expect({ screening, sanctionsList, aml, vasp }).toEqual({
      screening: { url: 'https://public.chainalysis.com', apiKey: 'key' },
      sanctionsList: '/etc/list.json',
      aml: { velocity: '1/1', structuring: null, thresholds: null },
      vasp: { name: 'Example Bank', lei },
    })
    const url = 'http://127.0.0.1:9000/screening'
    expect(readConfig({ SCREENING_URL: url }).screening).toEqual({ url, apiKey: null })
    expect(
      listErrors({ SCREENING_URL: 'ftp://a', SCREENING_API_KEY: 'a b', VASP_LEI: lei.slice(1) }),
    ).toEqual([
      expect.stringMatching(/^SCREENING_URL: /),
      'SCREENING_API_KEY: must be visible ASCII',
      expect.stringMatching(/^VASP_LEI: must be a Legal Entity Identifier/),
    ])
  })

  it('has a default for every sandbox setting', () => {
    expect(readConfig({})).toEqual({
      mode: 'sandbox',
      host: '127.0.0.1',
      port: 8787,
      publicOrigin: null,
      channels: { depositMax: 1_000_000n, idleMs: 3_600_000, maxWithdrawDelay: 86_400 },
      dataDirectory: '.bursar',
      databaseUrl: null,
      databasePoolerUrl: null,
      redisUrl: null,
      chains: [
        {
          kind: 'anvil',
          name: 'base-sepolia',
          rpcUrl: null,
          rpcVariable: 'CHAIN_RPC_URL_BASE_SEPOLIA',
          sponsorKey: null,
          ownerKey: null,
          ownerKeyPrevious: null,
          anvilBinary: null,
          x402Hashes: [],
        },
      ],
      anchorChain: null,
      x402: {
        payTo: null,
        price: { asset: 'USDC', units: 10_000n },
        facilitatorUrl: null,
        facilitatorKey: null,
      },
      railControlsUrl: null,
      fxRatesUrl: null,
      pegFeeds: new Map(),
      sessionSecret: null,
      sessionSecretPrevious: null,
      receiptKey: null,
      rotatingKeys: {
        ACCESS_TOKEN_KEY: { current: null, previous: null },
        WEB_BOT_AUTH_KEY: { current: null, previous: null },
        PUSH_KEY: { current: null, previous: null },
      },
      pkcs11: { module: null, pin: null },
      awsKms: {
        endpoint: null,
        credentialsFrom: null,
        accessKeyId: null,
        secretAccessKey: null,
        sessionToken: null,
        metadata: {
          instance: 'http://169.254.169.254',
          container: null,
          containerToken: null,
          containerTokenFile: null,
        },
      },
      gcpKms: {
        endpoint: 'https://cloudkms.googleapis.com',
        credentialsFrom: null,
        metadataHost: 'metadata.google.internal',
        credentials: null,
      },
      dataKey: null,
      dataKeyPrevious: null,
      rpId: null,
      founderAccount: null,
      guests: true,
      smtp: null,
      twilio: null,
      telegramUrl: 'https://api.telegram.org',
      identityProviders: ['google', 'apple'].map((name) => ({
        name,
        issuer: null,
        clientId: null,
        clientSecret: null,
        scope: null,
      })),
      trustedProxies: [],
      logLevel: 'info',
      marketHours: 'always',
      alpaca: null,
      cctpUrl: null,
      swapAggregators: null,
      webBotAuth: true,
      bazaarUrls: [],
      rates: {},
      sanctionsList: null,
      screening: null,
      cards: {
        url: 'https://api.lithic.com',
        apiKey: null,
        isPanReadable: false,
        webhookSecret: null,
        eventsSecret: null,
        previous: null,
        treasury: null,
        spreadBps: 50,
        floatMicros: 50_000_000n,
        pullMs: 2_500,
      },
      banking: {
        url: 'https://api.bridge.xyz',
        apiKey: null,
        webhookPublicKey: null,
        accountsPerCurrency: 1,
      },
      aml: { velocity: null, structuring: null, thresholds: null },
      travelRule: null,
      kycLimits: null,
      keepAliveSeconds: 65,
      metricsToken: null,
      eventDays: 90,
      answerRoomBytes: 268_435_456,
      tracesTo: null,
      sumsub: null,
      vasp: { name: 'Bursar', lei: null },
    })
  })

  it('treats an empty variable as unset', () => {
    expect(readConfig({ PORT: '', DATABASE_URL: '', MODE: undefined, RATE_FX: '' })).toEqual(readConfig({}))
  })

  it('ignores variables without our names', () => {
    expect(readConfig({ PATH: '/bin', HOME: '/root', npm_config_loglevel: 'x' })).toEqual(readConfig({}))
  })

  it('reads every given value', () => {
    const config = readConfig({
      ...production,
      PORT: '0',
      PUBLIC_ORIGIN: 'https://Bursar.Example:443/',
      X402_FX_PRICE: '1.50',
      TRUSTED_PROXIES: ' 10.0.0.0/8, ::1 ,',
      RATE_FX: '5/1',
    })
    expect(config).toMatchObject({
      mode: 'production',
      port: 0,
      publicOrigin: 'https://bursar.example',
      chains: [{ kind: 'rpc' }],
      x402: { price: { asset: 'USDC', units: 1_500_000n } },
      trustedProxies: ['10.0.0.0/8', '::1'],
      rates: { RATE_FX: '5/1' },
    })
  })

  it('has demo sessions and identity providers in production only when they are configured', () => {
    expect(readConfig(production)).toMatchObject({ guests: false, identityProviders: [] })
    expect(readConfig({ ...production, GUEST_SESSIONS: 'on' }).guests).toBe(true)
    expect(readConfig({ GUEST_SESSIONS: 'off' }).guests).toBe(false)
    const client = { OIDC_MY_IDP_ISSUER: 'https://id.example', OIDC_MY_IDP_CLIENT_ID: 'a' }
    const named = { ...production, IDENTITY_PROVIDERS: 'my-idp', ...client }
    expect(listErrors(named)).toEqual([
      'OIDC_MY_IDP_CLIENT_SECRET: missing; OIDC_MY_IDP_ISSUER, OIDC_MY_IDP_CLIENT_ID, OIDC_MY_IDP_CLIENT_SECRET must be set together',
    ])
    expect(readConfig({ ...named, OIDC_MY_IDP_CLIENT_SECRET: 'b' }).identityProviders).toEqual([
      { name: 'my-idp', issuer: 'https://id.example', clientId: 'a', clientSecret: 'b', scope: null },
    ])
  })

  it('prices stablecoins of the dollar by feeds in dollars, each once', () => {
    const [one, other] = [`0x${'1'.repeat(40)}`, `0x${'2'.repeat(40)}`]
    const feeds = { ...production, PEG_FEEDS: `USDC=${one},PYUSD=${other}` }
    expect([...readConfig(feeds).pegFeeds]).toEqual([
      ['USDC', one],
      ['PYUSD', other],
    ])
    for (const PEG_FEEDS of [`EURC=${one}`, `USDC=${one},EURC=${other}`, `eurc=${one}`, `EURC=USDC=${one}`])
      expect(listErrors({ ...production, PEG_FEEDS }).join()).toContain('must name USDC, USDT or PYUSD')
    expect(listErrors({ ...production, PEG_FEEDS: `USDC=${one},USDC=${other}` })).toEqual([
      'PEG_FEEDS: names a stablecoin twice',
    ])
  })

  it('names variables that must be set together', () => {
    expect(listErrors({ TWILIO_ACCOUNT_SID: 'AC1' }).map((line) => line.split(':')[0])).toEqual([
      'TWILIO_AUTH_TOKEN',
      'TWILIO_FROM',
    ])
    for (const mode of [{}, production])
      expect(listErrors({ ...mode, SUMSUB_APP_TOKEN: 'token' })).toEqual([
        'SUMSUB_SECRET_KEY: missing; SUMSUB_APP_TOKEN, SUMSUB_SECRET_KEY must be set together',
      ])
    expect(listErrors({ ...production, SMTP_URL: 'smtp://mail.example' })).toEqual([
      'SMTP_FROM: missing; SMTP_URL requires it',
    ])
  })

  it('names the variables that Alpaca’s API needs together, in any mode', () => {
    for (const mode of [{}, production])
      expect(listErrors({ ...mode, ALPACA_API_KEY: 'key' }).map((line) => line.split(':')[0])).toEqual([
        'ALPACA_API_SECRET',
        'ALPACA_FIRM_ACCOUNT_ID',
      ])
    const all = { ALPACA_API_KEY: 'key', ALPACA_API_SECRET: 'secret', ALPACA_FIRM_ACCOUNT_ID: 'firm-1' }
    expect(readConfig(all).alpaca).toMatchObject({
      apiKey: 'key',
      url: 'https://broker-api.alpaca.markets',
      firmAccountId: 'firm-1',
    })
  })

  it('reads the list of aggregators, with their keys', () => {
    const env = { SWAP_AGGREGATORS: 'lifi, 0x', ZEROX_API_KEY: 'key', LIFI_URL: 'http://127.0.0.1:1/' }
    expect(readConfig(env).swapAggregators).toEqual([
      { name: 'lifi', url: 'http://127.0.0.1:1', apiKey: null },
      { name: '0x', url: 'https://api.0x.org', apiKey: 'key' },
    ])
  })

  it('names everything missing for production, at once', () => {
    const { MODE, ...needed } = production
    expect(listErrors({ MODE }).map((line) => line.split(':')[0])).toEqual(Object.keys(needed))
    expect(listErrors(production)).toEqual([])
    const { SESSION_SECRET: _, ...rest } = production
    expect(listErrors(rest)).toEqual(['SESSION_SECRET: missing; it has no default in production'])
  })

  it('reads a chain with its own node', () => {
    const { CHAIN_RPC_URL_BASE_SEPOLIA: url, ...rest } = production
    const base = { ...rest, CHAINS: 'base', CHAIN_RPC_URL_BASE: url }
    expect(readConfig(base).chains[0]).toMatchObject({ kind: 'rpc', name: 'base', rpcUrl: url })
    expect(readConfig({ ...rest, CHAIN_RPC_URL: url }).chains[0]).toMatchObject({
      name: 'base-sepolia',
      rpcVariable: 'CHAIN_RPC_URL',
    })
    expect(readConfig({ CHAINS: 'arbitrum-sepolia' }).chains[0]).toMatchObject({ name: 'arbitrum-sepolia' })
  })

  it('reads several chains, each with its own node, the default first', () => {
    const { CHAIN_RPC_URL_BASE_SEPOLIA: url, ...rest } = production
    const two = {
      ...rest,
      CHAINS: 'base, arbitrum',
      CHAIN_RPC_URL_BASE: url,
      CHAIN_RPC_URL_ARBITRUM: `${url}/2`,
    }
    expect(readConfig(two).chains).toMatchObject([
      { kind: 'rpc', name: 'base', rpcUrl: url, rpcVariable: 'CHAIN_RPC_URL_BASE' },
      { kind: 'rpc', name: 'arbitrum', rpcUrl: `${url}/2`, rpcVariable: 'CHAIN_RPC_URL_ARBITRUM' },
    ])
    const sandbox = { CHAINS: 'base-sepolia,arbitrum-sepolia', CHAIN_RPC_URL_ARBITRUM_SEPOLIA: url }
    expect(readConfig(sandbox).chains).toMatchObject([
      { kind: 'anvil', name: 'base-sepolia', rpcUrl: null },
      { kind: 'rpc', name: 'arbitrum-sepolia', rpcUrl: url },
    ])
  })

  it.each([
    [{ CHAINS: 'base' }, 'CHAIN_RPC_URL_BASE: missing; it has no default in production'],
    [{ CHAINS: 'base', CHAIN_RPC_URL: 'https://a.example' }, 'CHAIN_RPC_URL: use CHAIN_RPC_URL_BASE'],
    [
      { CHAINS: 'base', CHAIN_RPC_URL_POLYGON: 'https://a.example' },
      'CHAIN_RPC_URL_POLYGON: CHAINS does not',
    ],
    [{ CHAINS: 'base', CHAIN_RPC_URL_BASE: 'ws://a.example' }, 'CHAIN_RPC_URL_BASE: Invalid URL'],
    [{ CHAINS: 'bse', CHAIN_RPC_URL_BASE: 'https://a.example' }, 'CHAINS: "bse" is not one of base-sepolia'],
    [
      { CHAINS: 'base,polygon', CHAIN_RPC_URL_BASE: 'https://a.example' },
      'CHAIN_RPC_URL_POLYGON: missing; it has no default in production',
    ],
    [{ CHAINS: 'base,base', CHAIN_RPC_URL_BASE: 'https://a.example' }, 'CHAINS: names base twice'],
    [
      { CHAINS: 'base', CHAIN_RPC_URL_BASE: 'https://a.example', ANCHOR_CHAIN: 'polygon' },
      'ANCHOR_CHAIN: polygon is not one of CHAINS (base)',
    ],
    [
      { CHAINS: 'base,polygon', CHAIN_RPC_URL: 'https://a.example' },
      'CHAIN_RPC_URL: is for one chain, and CHAINS names several; use CHAIN_RPC_URL_BASE and CHAIN_RPC_URL_POLYGON',
    ],
    [
      {
        CHAINS: 'base,base-sepolia',
        CHAIN_RPC_URL_BASE: 'https://a.example',
        CHAIN_RPC_URL_BASE_SEPOLIA: 'https://b.example',
      },
      'CHAINS: mixes chains with real money (base) and test chains',
    ],
    [
      { CHAINS: 'base', CHAIN_RPC_URL_BASE: 'https://a.example', CHAIN_RPC_URL: 'https://b.example' },
      'CHAIN_RPC_URL: is set beside CHAIN_RPC_URL_BASE',
    ],
    [
      { CHAINS: 'base', CHAIN_RPC_URL_BASE: 'https://a.example', MODE: 'sandbox' },
      'CHAINS: base has real money, which the sandbox never moves',
    ],
    [
      { CHAINS: 'base', MODE: 'sandbox', CHAIN: 'simulated' },
      'CHAIN: only test chains can be simulated, not base',
    ],
  ])('refuses the chain of %o', (chain, complaint) => {
    const { CHAIN_RPC_URL_BASE_SEPOLIA: _, ...rest } = production
    expect(listErrors({ ...rest, ...chain }).join('\n')).toContain(complaint)
  })

  it('names everything that contradicts production', () => {
    const complaints = listErrors({
      ...production,
      PUBLIC_ORIGIN: 'http://bursar.example',
      DATA_KEY: production.SESSION_SECRET,
      CHAIN_OWNER_KEY: production.CHAIN_SPONSOR_KEY.toUpperCase().replace('0X', '0x'),
      CHAIN: 'anvil',
      SANDBOX_MARKET_HOURS: 'nyse',
    })
    expect(complaints.map((line) => line.split(':')[0])).toEqual([
      'PUBLIC_ORIGIN',
      'DATA_KEY',
      'CHAIN_OWNER_KEY',
      'CHAIN',
      'SANDBOX_MARKET_HOURS',
    ])
    expect(listErrors({ ...production, PUBLIC_ORIGIN: 'http://127.0.0.1:8787' })).toEqual([])
  })

  it('takes a previous key of owners beside another one only', () => {
    const previous = { CHAIN_OWNER_KEY_PREVIOUS: production.CHAIN_OWNER_KEY }
    expect(listErrors(previous)).toEqual([
      'CHAIN_OWNER_KEY: missing; it is the key that replaces CHAIN_OWNER_KEY_PREVIOUS',
    ])
    expect(listErrors({ ...production, ...previous })).toEqual([
      'CHAIN_OWNER_KEY_PREVIOUS: must differ from CHAIN_OWNER_KEY',
    ])
    const other = { ...production, CHAIN_OWNER_KEY: `0x${'3'.repeat(64)}` }
    expect(listErrors({ ...other, ...previous })).toEqual([])
    expect(listErrors({ ...other, CHAIN_OWNER_KEY_PREVIOUS: production.CHAIN_SPONSOR_KEY })).toEqual([
      'CHAIN_OWNER_KEY_PREVIOUS: must differ from CHAIN_SPONSOR_KEY: one owns wallets, the other pays gas',
    ])
    const read = readConfig({ ...other, ...previous }).chains[0]
    expect([read.ownerKey, read.ownerKeyPrevious]).toEqual([
      other.CHAIN_OWNER_KEY,
      production.CHAIN_OWNER_KEY,
    ])
  })

  it('takes a previous data key beside another one only', () => {
    const previous = { DATA_KEY_PREVIOUS: 'd'.repeat(32) }
    expect(listErrors(previous)).toEqual(['DATA_KEY: missing; it is the key that replaces DATA_KEY_PREVIOUS'])
    expect(listErrors({ ...production, ...previous })).toEqual([
      'DATA_KEY_PREVIOUS: must differ from DATA_KEY',
    ])
    expect(listErrors({ ...production, ...previous, DATA_KEY: 'e'.repeat(32) })).toEqual([])
  })

  it('reads secrets from files, and rejects a secret given in both forms', () => {
    const directory = mkdtempSync(join(tmpdir(), 'bursar-config-'))
    try {
      const path = join(directory, 'secret')
      writeFileSync(path, `${'f'.repeat(40)}\n`)
      const { SESSION_SECRET: _, ...rest } = production
      expect(readConfig({ ...rest, SESSION_SECRET_FILE: path }).sessionSecret).toBe('f'.repeat(40))
      expect(listErrors({ ...production, SESSION_SECRET_FILE: path })).toEqual([
        'SESSION_SECRET_FILE: SESSION_SECRET is set too; remove one of them',
      ])
      const [gone, ...others] = listErrors({ ...rest, SESSION_SECRET_FILE: join(directory, 'gone') })
      expect(gone).toMatch(/^SESSION_SECRET_FILE: ENOENT/)
      expect(others).toEqual(['SESSION_SECRET: missing; it has no default in production'])
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  it('includes errors found by other checks', () => {
    const { SESSION_SECRET: _, ...rest } = production
    expect(() =>
      readConfig({ ...rest, RATE_FX: 'many' }, ({ rates }) => [`rates: ${rates.RATE_FX}`]),
    ).toThrow(/SESSION_SECRET: missing.*\n.*rates: many/)
  })

  it('names invalid and missing values in one message', () => {
    const { SESSION_SECRET: _, X402_PAY_TO: __, ...rest } = production
    const complaints = listErrors({
      ...rest,
      PORT: 'eighty',
      LOG_LEVEL: 'loud',
      DATABASE_URL: 'mysql://db.example',
      PUBLIC_ORIGIN: 'https://bursar.example/api',
      X402_FX_PRICE: '0.0000001',
    })
    expect(complaints.map((line) => line.split(':')[0]).sort()).toEqual([
      'DATABASE_URL',
      'LOG_LEVEL',
      'PORT',
      'PUBLIC_ORIGIN',
      'SESSION_SECRET',
      'X402_FX_PRICE',
      'X402_PAY_TO',
    ])
  })

  it('needs the direct address of a database behind a pooler', () => {
    expect(listErrors({ DATABASE_POOLER_URL: 'postgres://pooler.example/bursar' })).toEqual([
      expect.stringMatching(/^DATABASE_URL: missing/),
    ])
  })

  it.each([
    ['MODE', 'staging'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80.5'],
    ['PORT', '0x50'],
    ['PORT', '1e3'],
    ['PUBLIC_ORIGIN', 'bursar.example'],
    ['PUBLIC_ORIGIN', 'ftp://bursar.example'],
    ['PUBLIC_ORIGIN', 'https://bursar.example/?a'],
    ['PUBLIC_ORIGIN', 'https://ada:pw@bursar.example'],
    ['DATABASE_URL', 'http://db.example'],
    ['REDIS_URL', 'localhost:6379'],
    ['REDIS_URL', 'redis+sentinel://one,two'],
    ['CHAIN', 'mainnet'],
    ['CHAIN_RPC_URL', 'ws://rpc.example'],
    ['CHAIN_SPONSOR_KEY', '0x1234'],
    ['X402_PAY_TO', '0x1234'],
    ['X402_FX_PRICE', '0'],
    ['X402_FX_PRICE', '1e-2'],
    ['X402_FX_PRICE', '-1'],
    ['X402_FX_PRICE', '0.0000001'],
    ['SESSION_SECRET', 'short'],
    ['LOG_LEVEL', 'verbose'],
    ['DATA_KEY', 'short'],
    ['SANDBOX_MARKET_HOURS', 'sometimes'],
    ['ALPACA_URL', 'alpaca.example'],
    ['RELAY_URL', 'relay.example'],
    ['RP_ID', '127.0.0.1'],
    ['RP_ID', 'https://bursar.example'],
    ['FOUNDER_ACCOUNT', 'ada@example.com'],
    ['GUEST_SESSIONS', 'yes'],
    ['SMTP_URL', 'mail.example'],
    ['IDENTITY_PROVIDERS', 'google,Guest!'],
    ['IDENTITY_PROVIDERS', 'guest'],
    ['TRUSTED_PROXIES', '10.0.0.0/8, proxy.example'],
    ['TRUSTED_PROXIES', '10.0.0.0/'],
    ['TRUSTED_PROXIES', '10.0.0.0/33'],
    ['TRUSTED_PROXIES', '::/129'],
    ['TRUSTED_PROXIES', '10.0.0.0/8/8'],
    ['TRUSTED_PROXIES', '10.0.0.0/-1'],
  ])('rejects %s=%s, naming the variable', (name, value) => {
    const complaints = listErrors({ [name]: value })
    expect(complaints).toHaveLength(1)
    expect(complaints[0]).toMatch(new RegExp(`^${name}: `))
  })

  it('never repeats a secret’s value', () => {
    const secret = 'hunter2-hunter2'
    expect(listErrors({ SESSION_SECRET: secret, CHAIN_SPONSOR_KEY: secret }).join()).not.toContain(secret)
  })
})
