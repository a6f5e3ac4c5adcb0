/** Code samples of an operation. They run as pasted: in the sandbox they read the demo key themselves. */
import { clientPath } from '../../openapi/client-text.ts'
import type { Operation } from './operations.ts'

export interface Sample {
  readonly language: 'curl' | 'client' | 'python'
  readonly title: string
  readonly text: string
}

interface Deployment {
  readonly origin: string
  readonly isSandbox: boolean
}

/** Webhooks of providers have no sample of the client, because clients do not call them. */
export function buildSamples(operation: Operation, deployment: Deployment): readonly Sample[] {
  const client = {
    language: 'client',
    title: 'TypeScript',
    text: clientSample(operation, deployment),
  } as const
  return [
    { language: 'curl', title: 'curl', text: curlSample(operation, deployment) },
    ...(operation.caller === 'provider' ? [] : [client]),
    { language: 'python', title: 'Python', text: pythonSample(operation, deployment) },
  ]
}

/** Path and query with the example values. */
function buildTarget({ path, parameters }: Operation): string {
  const valued = parameters.filter(({ example }) => example !== '')
  const filled = valued
    .filter((one) => one.in === 'path')
    .reduce((at, { name, example }) => at.replace(`{${name}}`, encodeURIComponent(example)), path)
  const query = new URLSearchParams(
    Object.fromEntries(
      valued.filter((one) => one.in === 'query').map(({ name, example }) => [name, example]),
    ),
  ).toString()
  return query === '' ? filled : `${filled}?${query}`
}

/** Credential of a sample: a key, a session of a person, or none. */
function chooseCredential({ caller }: Operation): 'key' | 'session' | null {
  if (caller === 'account') return 'key'
  return caller === 'person' || caller === 'admin' ? 'session' : null
}

function curlSample(operation: Operation, { origin, isSandbox }: Deployment): string {
  const credential = chooseCredential(operation)
  const source =
    credential === 'key'
      ? `KEY=$(curl -s ${origin}/sandbox/credentials | sed 's/.*"demoApiKey":"\\([^"]*\\)".*/\\1/')`
      : `SESSION=$(curl -s -X POST ${origin}/api/auth/guest | sed 's/.*"sessionToken":"\\([^"]*\\)".*/\\1/')`
  const { method, bodyExample } = operation
  const hasBody = bodyExample !== undefined
  const url = `${origin}${buildTarget(operation)}`
  const quoted = /[?&]/.test(url) ? `'${url}'` : url
  const parts = [
    `curl -s ${method === 'GET' || (method === 'POST' && hasBody) ? '' : `-X ${method} `}${quoted}`,
    ...(credential === null
      ? []
      : [
          `-H "Authorization: Bearer $${isSandbox ? '' : 'BURSAR_'}${credential === 'key' ? 'KEY' : 'SESSION'}"`,
        ]),
    ...(operation.isRepeatable ? ['-H "Idempotency-Key: docs-$(date +%s)"'] : []),
    ...(hasBody
      ? [
          `-H 'Content-Type: application/json'`,
          `-d '${JSON.stringify(bodyExample).replaceAll("'", "'\\''")}'`,
        ]
      : []),
  ]
  return [...(credential !== null && isSandbox ? [source] : []), parts.join(' \\\n  ')].join('\n')
}

function clientSample(operation: Operation, { origin, isSandbox }: Deployment): string {
  const credential = chooseCredential(operation)
  const option = credential === 'key' ? 'apiKey' : 'session'
  const secret = credential === 'key' ? 'BURSAR_KEY' : 'BURSAR_SESSION'
  const lines =
    credential === null
      ? [`const bursar = new Bursar({ url: '${origin}' })`]
      : !isSandbox
        ? [`const bursar = new Bursar({ url: '${origin}', ${option}: process.env.${secret} })`]
        : credential === 'key'
          ? [
              `const { demoApiKey: apiKey } = await new Bursar({ url: '${origin}' }).sandbox.credentials()`,
              `const bursar = new Bursar({ url: '${origin}', apiKey })`,
            ]
          : [
              `const { sessionToken: session } = await new Bursar({ url: '${origin}' }).auth.guest()`,
              `const bursar = new Bursar({ url: '${origin}', session })`,
            ]
  const valued = operation.parameters.filter(({ example }) => example !== '')
  const body = typeof operation.bodyExample === 'object' ? operation.bodyExample : {}
  const input = { ...Object.fromEntries(valued.map(({ name, example }) => [name, example])), ...body }
  const call = `bursar.${clientPath(operation.id).join('.')}(${Object.keys(input).length === 0 ? '' : toTypescript(input)})`
  return [`import { Bursar } from 'bursar/client'`, '', ...lines, '', `console.log(await ${call})`].join('\n')
}

function pythonSample(operation: Operation, { origin, isSandbox }: Deployment): string {
  const credential = chooseCredential(operation)
  const { method, bodyExample } = operation
  const hasBody = bodyExample !== undefined
  const source = !isSandbox
    ? [`token = os.environ["${credential === 'key' ? 'BURSAR_KEY' : 'BURSAR_SESSION'}"]`]
    : credential === 'key'
      ? [`token = json.load(urllib.request.urlopen("${origin}/sandbox/credentials"))["demoApiKey"]`]
      : [
          `guest = urllib.request.Request("${origin}/api/auth/guest", method="POST")`,
          'token = json.load(urllib.request.urlopen(guest))["sessionToken"]',
        ]
  const headers = [
    ...(credential === null ? [] : ['"Authorization": f"Bearer {token}"']),
    ...(operation.isRepeatable ? ['"Idempotency-Key": str(uuid.uuid4())'] : []),
    ...(hasBody ? ['"Content-Type": "application/json"'] : []),
  ]
  const modules = [
    'json',
    ...(credential !== null && !isSandbox ? ['os'] : []),
    'urllib.error',
    'urllib.request',
    ...(operation.isRepeatable ? ['uuid'] : []),
  ]
  return [
    `import ${modules.join(', ')}`,
    '',
    ...(credential === null ? [] : source),
    'request = urllib.request.Request(',
    `    "${origin}${buildTarget(operation)}",`,
    `    method="${method}",`,
    ...(headers.length === 0 ? [] : [`    headers={${headers.join(', ')}},`]),
    ...(hasBody ? [`    data=json.dumps(${toPython(bodyExample)}).encode(),`] : []),
    ')',
    'try:',
    '    with urllib.request.urlopen(request) as response:',
    '        print(response.read().decode())',
    'except urllib.error.HTTPError as problem:',
    '    print(problem.read().decode())',
  ].join('\n')
}

/** A JSON value as a TypeScript literal. */
function toTypescript(value: unknown): string {
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
  if (Array.isArray(value)) return `[${value.map(toTypescript).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, one]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`
    return `${key}: ${toTypescript(one)}`
  })
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
}

/** A JSON value as a Python literal: JSON strings are Python strings. */
function toPython(value: unknown): string {
  if (value === null || value === undefined) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (Array.isArray(value)) return `[${value.map(toPython).join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([name, one]) => `${JSON.stringify(name)}: ${toPython(one)}`)
    .join(', ')}}`
}
