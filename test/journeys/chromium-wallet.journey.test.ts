/** A payment signed with a real browser's passkey, on a real chain: the signed transfer is exactly what happens. */
import type { Page } from 'playwright-core'
import { createPublicClient, erc20Abi, http } from 'viem'
import { baseSepolia } from 'viem/chains'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { findAnvil } from '../../src/chain/node/anvil-process.ts'
import { createAccount, findChromium, newVisit, openSuiteBrowser } from './chromium.ts'
import { sharedGateway } from './gateway.ts'
import { requestJson } from './people.ts'

const executable = findChromium()
const hex = z.templateLiteral(['0x', z.string()])
const credentials = z.object({
  chain: z.object({ rpcUrl: z.string(), tokens: z.object({ USDC: hex }) }),
})
const payee = '0x00000000000000000000000000000000DeaDBeef'
const binary = (() => {
  try {
    return findAnvil(process.env.ANVIL_BIN)
  } catch {
    return undefined
  }
})()
if (executable === undefined)
  process.stderr.write('No Chromium here: signing with its passkeys is not tested. Set CHROMIUM_BIN.\n')

describe.skipIf(executable === undefined || binary === undefined)('a Chromium passkey', () => {
  const origin = sharedGateway()
  const browser = openSuiteBrowser()

  /** Sends a request as a script of the page would, with its cookie. */
  const sendFromPage = async (page: Page, method: string, path: string, content?: object) => {
    const json = content === undefined ? {} : { body: JSON.stringify(content) }
    const init = { method, headers: { 'content-type': 'application/json' }, ...json }
    const answer = await page.evaluate<unknown>(
      `fetch(${JSON.stringify(path)}, ${JSON.stringify(init)}).then(async (response) => ({
        status: response.status,
        body: await response.json(),
      }))`,
    )
    return z.object({ status: z.number(), body: z.record(z.string(), z.unknown()) }).parse(answer)
  }

  /** Signs a challenge in the browser, in the format that the contract expects: base64url of the credential's JSON. */
  const sign = async (page: Page, challenge: string) => {
    const bytes = JSON.stringify([...Buffer.from(challenge, 'base64url')])
    const credential = await page.evaluate<unknown>(
      `navigator.credentials.get({
        publicKey: { challenge: new Uint8Array(${bytes}), userVerification: 'required' },
      }).then((credential) => credential.toJSON())`,
    )
    return Buffer.from(JSON.stringify(credential)).toString('base64url')
  }

  it('moves exactly the signed amount, once, from a wallet that it owns on chain', async () => {
    const { page, complaints, addAuthenticator } = await newVisit(browser(), origin)
    await addAuthenticator()
    await createAccount(page, 'Ada')

    const { body: wallet } = await sendFromPage(page, 'GET', '/api/wallets')
    const safeAddress = hex.parse(wallet.safeAddress)
    const { chain } = credentials.parse((await requestJson(origin, 'GET', '/sandbox/credentials')).body)
    const faucet = { address: safeAddress, token: 'USDC', amount: '50' }
    await requestJson(origin, 'POST', '/sandbox/faucet', { body: faucet })
    const client = createPublicClient({ chain: baseSepolia, transport: http(chain.rpcUrl) })
    const toUnits = (address: `0x${string}`) =>
      client.readContract({
        address: chain.tokens.USDC,
        abi: erc20Abi,
        functionName: 'balanceOf',
        args: [address],
      })

    const transfer = { destination: payee, amount: '12.5', token: 'USDC' }
    const { status, body: intent } = await sendFromPage(
      page,
      'POST',
      '/api/wallets/transfer/intent',
      transfer,
    )
    expect(status).toBe(200)
    const signature = await sign(page, String(intent.challenge))
    const signed = { ...transfer, intentId: intent.intentId, signature }

    const blocks = await client.getBlockNumber({ cacheTime: 0 })
    const more = await sendFromPage(page, 'POST', '/api/wallets/transfer', { ...signed, amount: '13' })
    expect([more.status, more.body.code]).toEqual([403, 'signature_rejected'])
    const unsigned = await sendFromPage(page, 'POST', '/api/wallets/transfer', {
      ...transfer,
      signature: 'sandbox',
    })
    expect([unsigned.status, unsigned.body.code]).toEqual([403, 'signature_rejected'])
    expect(await client.getBlockNumber({ cacheTime: 0 })).toBe(blocks)

    const sent = await sendFromPage(page, 'POST', '/api/wallets/transfer', signed)
    expect(sent.body).toMatchObject({ status: 'confirmed', authorization: 'passkey', amount: '12.5' })
    expect([await toUnits(payee), await toUnits(safeAddress)]).toEqual([12_500_000n, 37_500_000n])
    const again = await sendFromPage(page, 'POST', '/api/wallets/transfer', signed)
    expect([again.status, again.body.code]).toEqual([403, 'signature_rejected'])
    expect(await toUnits(payee)).toBe(12_500_000n)
    const { body: after } = await sendFromPage(page, 'GET', '/api/wallets')
    expect(after.modules).toMatchObject([{ status: 'active' }, { status: 'active' }])
    expect(complaints.filter((line) => !line.includes('403'))).toEqual([])
    await page.context().close()
  }, 180_000)
})
