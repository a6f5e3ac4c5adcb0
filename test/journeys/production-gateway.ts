/** A gateway in production mode on this machine: a local chain, PostgreSQL, and a mail server that keeps its mail. */
import { generateKeyPairSync } from 'node:crypto'
import { z } from 'zod'
import { bursar } from '../commands/bursar.ts'
import { createTestDatabase, testServerUrl } from '../engines.ts'
import { closedPort, startSmtp } from '../smtp.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { type Person, personFrom, requestJson } from './people.ts'

/** @property node gateway that runs the chain and its faucet. */
export interface Production extends ProductionGateway {
  readonly node: Gateway
  readonly rpcUrl: string
}

export interface ProductionGateway {
  readonly databaseUrl: string
  /** Of its first start, for commands. */
  readonly environment: Readonly<Record<string, string>>
  readonly mail: Awaited<ReturnType<typeof startSmtp>>
  gateway(): Gateway
  /** Starts it again. @param more added to the first environment. */
  start(more?: Record<string, string>): Promise<void>
  /** Signs in by a mailed code; a new address creates a new account. */
  signIn(destination: string): Promise<Person>
  close(): Promise<void>
}

/** A public key, as PEM on one line. */
function newPublicKey(): string {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return String(publicKey.export({ format: 'pem', type: 'spki' })).replaceAll('\n', '\\n')
}

const rpc = z.object({ chain: z.object({ rpcUrl: z.string() }) })

/** Starts one on the chain of a sandbox. Requires a database server. @param more added to the environment. */
export async function openProduction(more: Record<string, string> = {}): Promise<Production> {
  const node = await startGateway({ CHAIN: 'anvil' })
  const { chain } = rpc.parse((await requestJson(node.origin, 'GET', '/sandbox/credentials')).body)
  const { rpcUrl } = chain
  const production = await openProductionOn({ CHAIN_RPC_URL: rpcUrl }, more).catch(async (error: unknown) => {
    await node.stop()
    throw error
  })
  const close = async () => {
    await production.close()
    await node.stop()
  }
  return { ...production, node, rpcUrl, close }
}

/** Requires a database server. @param chain variables of the chain. @param more added to the environment. */
export async function openProductionOn(
  chain: Record<string, string>,
  more: Record<string, string> = {},
): Promise<ProductionGateway> {
  const parts: { close: () => Promise<unknown> }[] = []
  const database = await createTestDatabase(testServerUrl ?? '')
  parts.push({ close: database.drop })
  const mail = await startSmtp()
  parts.push({ close: mail.close })
  const port = String(await closedPort())
  const env = {
    MODE: 'production',
    PORT: port,
    PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
    DATABASE_URL: database.url,
    ...chain,
    CHAIN_SPONSOR_KEY: `0x${'1'.repeat(64)}`,
    CHAIN_OWNER_KEY: `0x${'2'.repeat(64)}`,
    X402_PAY_TO: `0x${'2'.repeat(40)}`,
    SESSION_SECRET: 's'.repeat(32),
    DATA_KEY: 'd'.repeat(32),
    LITHIC_WEBHOOK_SECRET: `whsec_${'c'.repeat(32)}`,
    BRIDGE_WEBHOOK_PUBLIC_KEY: newPublicKey(),
    SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
    SMTP_FROM: 'Bursar <codes@bursar.example>',
    RATE_OTP_RESEND: '1000/60',
    RATE_MESSAGES: '1000/60',
    RATE_OTP_DESTINATION: '1000/60',
    RATE_OTP_IP: '1000/60',
    ...more,
  }
  const migrated = await bursar(['migrate'], { ...env, CHAIN: '' })
  const close = async () => {
    for (const part of parts.reverse()) await part.close()
  }
  const fail = async (error: unknown) => {
    await close()
    throw error
  }
  if (migrated.code !== 0) await fail(new Error(`the database was not migrated: ${migrated.err}`))
  let gateway = await startGateway(env).catch(fail)
  parts.push({ close: () => gateway.stop() })
  return {
    databaseUrl: database.url,
    environment: { ...env, CHAIN: '' },
    mail,
    gateway: () => gateway,
    start: async (added = {}) => {
      await gateway.stop()
      gateway = await startGateway({ ...env, ...added })
    },
    signIn: async (destination) => {
      const { body } = await requestJson(gateway.origin, 'POST', '/api/auth/otp/start', {
        body: { channel: 'email', destination },
      })
      const text = mail.mails.findLast(({ to }) => to.includes(destination))?.text ?? ''
      const code = /\b\d{6}\b/.exec(text)?.[0]
      const answer = await requestJson(gateway.origin, 'POST', '/api/auth/otp/verify', {
        body: { challengeId: body.challengeId, code },
      })
      return personFrom(gateway.origin, answer.body)
    },
    close,
  }
}
