/** The pages of the documentation: the API with every operation, and what each refusal means. Generated, never written by hand. */
import { type FailureCode, failureCodes, failures } from '../../failures/failure.ts'
import { failureGuide } from '../../failures/failure-guide.ts'
import { problemExample } from '../openapi/problem.ts'
import { Document } from './shell.tsx'

/** The API: how to come in, and every operation, shown by Swagger UI. */
export function ApiPage() {
  return (
    <Shell title="API" page="docs" isApi={true}>
      <div id="api">
        <noscript>
          This page needs its script. The description itself is at{' '}
          <a href="/api/openapi.json">/api/openapi.json</a>.
        </noscript>
      </div>
    </Shell>
  )
}

/** Every code, by status. */
export function ErrorsPage() {
  return (
    <Shell title="Errors" page="errors">
      <h1>Errors</h1>
      <p>
        Every refusal is <code>application/problem+json</code> (RFC 9457): <code>detail</code> says what
        happened with the values, <code>hint</code> what to do, <code>code</code> is a promise, and{' '}
        <code>type</code> leads to a page below. A request that may be repeated is repeated with the same{' '}
        <code>Idempotency-Key</code>.
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col">Status</th>
            <th scope="col">Code</th>
            <th scope="col">Title</th>
            <th scope="col">Repeat?</th>
          </tr>
        </thead>
        <tbody>
          {failureCodes.map((code) => (
            <tr>
              <td>{failures[code].status}</td>
              <td>
                <a href={`/errors/${code}`}>
                  <code>{code}</code>
                </a>
              </td>
              <td>{failures[code].title}</td>
              <td>{failures[code].retry ? 'yes' : 'no'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Shell>
  )
}

/** One code. */
export function ErrorPage({ code }: { readonly code: FailureCode }) {
  const { status, title, retry } = failures[code]
  const { meaning, remedy, members } = failureGuide[code]
  return (
    <Shell title={title} page={`errors/${code}`}>
      <h1>{title}</h1>
      <p>
        <code>{code}</code>, status {status}
      </p>
      <h2>What it means</h2>
      <p>{meaning}</p>
      <h2>What to do</h2>
      <p>{remedy}</p>
      <h2>Does it help to repeat the request?</h2>
      <p>{retry ? yes : no}</p>
      <h2>Members</h2>
      <p>
        <code>type</code>, <code>title</code>, <code>status</code>, <code>detail</code>, <code>instance</code>
        , <code>code</code>, <code>requestId</code>, often <code>hint</code>
        {Object.keys(members).map((name) => (
          <>
            , <code>{name}</code>
          </>
        ))}
        .
      </p>
      <h2>Example</h2>
      <pre>{JSON.stringify(problemExample(code), null, 2)}</pre>
    </Shell>
  )
}

const yes =
  'Yes, unchanged and with the same Idempotency-Key: after Retry-After where the answer has one, else as soon as what it waits for has come.'
const no = 'No: the same request is refused again until something has changed.'

const swaggerUi = (
  <>
    <link rel="stylesheet" href="/assets/swagger-ui.css" />
    <script src="/assets/swagger-ui.js" defer />
  </>
)

function Shell({
  title,
  page,
  isApi = false,
  children,
}: {
  readonly title: string
  readonly page: string
  readonly isApi?: boolean
  readonly children?: unknown
}) {
  return (
    <Document title={title} style="docs" script="docs" before={isApi ? swaggerUi : ''}>
      <body>
        <header>
          <strong>Bursar</strong>
          <nav aria-label="Documentation">
            <a href="/docs">API</a> <a href="/errors">Errors</a> <a href="/api/openapi.json">OpenAPI</a>
          </nav>
        </header>
        <main class={isApi ? 'wide' : ''}>{children}</main>
        <footer id="feedback" data-page={page}>
          Was this page of use?{' '}
          <button type="button" value="up">
            Yes
          </button>{' '}
          <button type="button" value="down">
            No
          </button>{' '}
          <span role="status" />
        </footer>
      </body>
    </Document>
  )
}
